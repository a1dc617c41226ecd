package process_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/adapters/internal/process"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("PROCESS_TEST_LIFE"); dir != "" {
		live(dir, os.Getenv("PROCESS_TEST_NOCGROUP") != "")
	}
	goleak.VerifyTestMain(m)
}

// modes runs a test with cgroups, where there are some, and without.
func modes(t *testing.T, test func(t *testing.T, k *process.Keeper)) {
	for _, without := range []bool{false, true} {
		t.Run(map[bool]string{false: "cgroup", true: "walk"}[without], func(t *testing.T) {
			k, err := process.Open(process.Config{Dir: t.TempDir(), Name: "test", NoCgroup: without})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := k.Close(); err != nil {
					t.Errorf("close keeper: %v", err)
				}
			}()
			if !without && !k.Cgroups() {
				t.Log("no cgroup can be used here: this run is the walk's")
			}
			test(t, k)
		})
	}
}

func group(t *testing.T, k *process.Keeper) *process.Group {
	t.Helper()
	g, err := k.Group("g")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// shell starts a script and returns the pids that it prints; see printed.
func shell(t *testing.T, g *process.Group, script string, least int) (*process.Leader, []int) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.Command("bash", "-c", script)
	cmd.Stdout = write
	leader, err := g.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	write.Close()
	pids := printed(t, read, least)
	if len(pids) == 0 {
		<-leader.Done()
		t.Logf("nothing was printed; the leader ended by %v", leader.State())
	}
	return leader, pids
}

// printed reads the pids that a script prints, up to a line "ready" or the one that is
// the least to come, whichever is later.
func printed(t *testing.T, from io.Reader, least int) (pids []int) {
	t.Helper()
	ready := false
	for lines := bufio.NewScanner(from); !(ready && len(pids) >= least) && lines.Scan(); {
		if lines.Text() == "ready" {
			ready = true
			continue
		}
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("the script said %q", lines.Text())
		}
		pids = append(pids, pid)
	}
	return pids
}

func there(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil
}

func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if there(pid) {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			t.Errorf("process %d is left: %s", pid, stat)
		}
	}
}

// Every way to survive that is known to us.
const survivors = `
trap '' TERM HUP
sleep 1000 & echo $!
setsid bash -c 'trap "" TERM HUP INT; echo $$; sleep 1000 & echo $!; wait'  &
( setsid bash -c 'echo $$; exec sleep 1000' & )
( ( sleep 1000 & echo $! ) & )
bash -c 'kill -STOP $$' & echo $!
echo $$
echo ready
wait
`

func TestKillLeavesNothing(t *testing.T) {
	modes(t, func(t *testing.T, k *process.Keeper) {
		g := group(t, k)
		for range 3 {
			leader, pids := shell(t, g, survivors, 7)
			if len(pids) != 7 {
				t.Fatalf("the script started %v", pids)
			}
			if err := g.Kill(); err != nil {
				t.Fatal(err)
			}
			gone(t, pids)
			if leader.State().Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Errorf("the leader ended by %v", leader.State())
			}
		}
		if err := errors.Join(g.Close(), g.Close()); err != nil {
			t.Error(err)
		}
		if _, err := g.Start(exec.Command("true")); !errors.Is(err, process.ErrClosed) {
			t.Errorf("start in a closed group: %v", err)
		}
	})
}

// A bomb of bounded size: each process starts two more and goes on.
const storm = `
storm() { (( $1 > 0 )) || { sleep 1000; return; }; storm $(($1-1)) & storm $(($1-1)) & echo $BASHPID; wait; }
storm 5 &
storm 5 &
sleep 0.02
echo ready
wait
`

// Where nobody has ever been, the machine's processes are not looked at: that
// takes thousands of allocations.
func TestEndOfUnusedGroup(t *testing.T) {
	k, err := process.Open(process.Config{Dir: t.TempDir(), Name: "test", NoCgroup: true})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	g := group(t, k)
	if n := testing.AllocsPerRun(10, func() { err = errors.Join(err, g.End()) }); err != nil || n > 5 {
		t.Errorf("%v allocations, %v", n, err)
	}
}

func TestKillForkStorm(t *testing.T) {
	modes(t, func(t *testing.T, k *process.Keeper) {
		g := group(t, k)
		_, pids := shell(t, g, storm, 1)
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		gone(t, pids)
		if left, err := g.Left(); left || err != nil {
			t.Errorf("left %v, %v", left, err)
		}
	})
}

// What a sub-group holds ends without the outer leader.
func TestSubGroup(t *testing.T) {
	modes(t, func(t *testing.T, k *process.Keeper) {
		g := group(t, k)
		sub, err := g.Sub("call")
		if err != nil {
			t.Fatal(err)
		}
		inReader, in, _ := os.Pipe()
		out, outWriter, _ := os.Pipe()
		cmd := exec.Command("bash", "-c", `
set -m
while read -r _; do
  ( [[ $1 ]] && echo 0 >"$1/cgroup.procs"
    echo $BASHPID; read -r _
    setsid sleep 1000 & echo $!
    ( sleep 1001 & echo $! )
    wait ) &
  wait $!
  echo "ended $?"
done`, "-", sub.Path())
		cmd.Stdin, cmd.Stdout = inReader, outWriter
		leader, err := g.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		inReader.Close()
		outWriter.Close()
		lines := bufio.NewScanner(out)
		for range 3 {
			fmt.Fprintln(in)
			var pids []int
			for range 3 {
				lines.Scan()
				pid, _ := strconv.Atoi(lines.Text())
				if len(pids) == 0 {
					if err := sub.Adopt(pid); err != nil {
						t.Fatal(err)
					}
					fmt.Fprintln(in)
				}
				pids = append(pids, pid)
			}
			if err := sub.Kill(); err != nil {
				t.Fatal(err)
			}
			if lines.Scan(); lines.Text() != "ended 137" {
				t.Errorf("the shell says %q", lines.Text())
			}
			gone(t, pids)
			if leader.State() != nil {
				t.Fatal("the outer leader ended too")
			}
		}
		in.Close()
		<-leader.Done()
		out.Close()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Orphans that end by themselves do not stay as zombies, and children of others
// are not stolen.
func TestReapsOnlyItsOwn(t *testing.T) {
	modes(t, func(t *testing.T, k *process.Keeper) {
		mine := exec.Command("sh", "-c", "exit 7")
		if err := mine.Start(); err != nil {
			t.Fatal(err)
		}
		g := group(t, k)
		leader, pids := shell(t, g, `( sleep 0.01 & echo $! ); ( setsid sleep 1000 & echo $! ); echo ready`, 2)
		<-leader.Done()
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		gone(t, pids)
		var exit *exec.ExitError
		if err := mine.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
			t.Errorf("another package's child: %v", err)
		}
	})
}

// What a nursery's members leave to us is nobody's but who fosters it, and ends
// with the nursery.
func TestFoster(t *testing.T) {
	k, err := process.Open(process.Config{Dir: t.TempDir(), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	nursery, home := group(t, k), group(t, k)
	if !k.Cgroups() {
		if err := nursery.Nurse(); !errors.Is(err, process.ErrNoCgroup) {
			t.Errorf("without cgroups: %v", err)
		}
		return
	}
	if err := nursery.Nurse(); err != nil {
		t.Fatal(err)
	}
	leader, pids := shell(t, nursery, `( sleep 1000 & echo $! ); ( sh -c 'exit 7' & echo $! ); ( sh -c 'exit 8' & echo $! ); ( sleep 1000 & echo $! ); sleep 0.2; echo ready`, 2)
	<-leader.Done()
	if err := home.Reap(); err != nil {
		t.Fatal(err)
	}
	alive, err := home.Foster(pids[0])
	if err != nil {
		t.Fatal(err)
	}
	ended, err := home.Foster(pids[1])
	if err == nil {
		<-ended.Done()
		if got := ended.State().ExitCode(); got != 7 {
			t.Errorf("it ended with %d", got)
		}
	} else if there(pids[1]) { // a dead process cannot be moved
		t.Errorf("%v, and the process is left", err)
	}
	if err := nursery.Close(); err != nil {
		t.Fatal(err)
	}
	if err := home.Reap(); err != nil {
		t.Fatal(err)
	}
	gone(t, pids[1:])
	if !there(pids[0]) {
		t.Error("the nursery's end has taken a fostered process along")
	}
	if err := home.Kill(); err != nil {
		t.Fatal(err)
	}
	<-alive.Done()
	gone(t, pids)
	if _, err := home.Foster(pids[0]); err == nil {
		t.Error("a process that is gone was fostered")
	}
	if err := home.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOneKeeperAtATime(t *testing.T) {
	cfg := process.Config{Dir: t.TempDir(), Name: "test"}
	k, err := process.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := process.Open(cfg); !errors.Is(err, process.ErrInUse) {
		t.Errorf("a second keeper: %v", err)
	}
	other := cfg
	other.Name = "other"
	k2, err := process.Open(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(k.Close(), k.Close(), k2.Close()); err != nil {
		t.Error(err)
	}
	if files, _ := filepath.Glob(filepath.Join(cfg.Dir, "*.processes")); len(files) > 0 {
		t.Errorf("left %v", files)
	}
}

func TestRefusals(t *testing.T) {
	if _, err := process.Open(process.Config{Dir: t.TempDir(), Name: "../x"}); err == nil {
		t.Error("a name that is a path")
	}
	k, err := process.Open(process.Config{Dir: t.TempDir(), Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("true")
	cmd.Stdout = new(strings.Builder)
	if _, err := group(t, k).Start(cmd); err == nil {
		t.Error("a stream that needs a copying goroutine")
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	if _, err := k.Group("late"); err == nil {
		t.Error("a group of a closed keeper")
	}
}
