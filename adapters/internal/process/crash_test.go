package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/adapters/internal/process"
)

// live is a server's life in a process of its own: it starts survivors, prints
// their pids and waits to be killed.
func live(dir string, without bool) {
	k, err := process.Open(process.Config{Dir: dir, Name: "test", NoCgroup: without})
	if err == nil {
		var g *process.Group
		if g, err = k.Group("g"); err == nil {
			cmd := exec.Command("bash", "-c", survivors)
			cmd.Stdout = os.Stdout
			_, err = g.Start(cmd)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	select {}
}

// begin starts a life and returns it with the pids of its survivors.
func begin(t *testing.T, dir string, without bool) (*exec.Cmd, []int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROCESS_TEST_LIFE="+dir)
	if without {
		cmd.Env = append(cmd.Env, "PROCESS_TEST_NOCGROUP=1")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := printed(t, out, 7)
	if len(pids) != 7 {
		t.Fatalf("survivors: %v", pids)
	}
	return cmd, pids
}

// guardOf finds the guard of a life, which is a child of its process.
func guardOf(t *testing.T, life int) int {
	t.Helper()
	data, err := exec.Command("sh", "-c", fmt.Sprintf("cat /proc/%d/task/*/children", life)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(data)) {
		cmdline, _ := os.ReadFile("/proc/" + field + "/cmdline")
		if strings.HasPrefix(string(cmdline), "/bin/sh\x00") {
			pid, _ := strconv.Atoi(field)
			return pid
		}
	}
	t.Fatal("the life has no guard")
	return 0
}

// ended waits for processes that are no children of ours.
func ended(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000)
		for err == unix.EINTR {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000)
		}
		unix.Close(fd)
		if n == 0 || err != nil {
			t.Errorf("process %d lives on (%v)", pid, err)
		}
	}
}

// After kill -9 of the server the guard ends everything, with nobody's help.
func TestGuard(t *testing.T) {
	for _, without := range []bool{false, true} {
		t.Run(map[bool]string{false: "cgroup", true: "walk"}[without], func(t *testing.T) {
			life, pids := begin(t, t.TempDir(), without)
			_ = life.Process.Kill()
			_ = life.Wait()
			ended(t, pids)
		})
	}
}

// After kill -9 of the server and of its guard the next start ends everything,
// whatever way of keeping the next life uses.
func TestSweep(t *testing.T) {
	for _, before := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v %v", before, after), func(t *testing.T) {
				dir := t.TempDir()
				life, pids := begin(t, dir, before)
				guard := guardOf(t, life.Process.Pid)
				_ = unix.Kill(guard, unix.SIGKILL)
				_ = life.Process.Kill()
				_ = life.Wait()
				alive := 0
				for _, pid := range pids {
					if there(pid) {
						alive++
					}
				}
				// The kernel itself ends the stopped one, whose process group is
				// orphaned.
				if alive < len(pids)-1 {
					t.Errorf("%d of %d lived until the sweep", alive, len(pids))
				}
				k, err := process.Open(process.Config{Dir: dir, Name: "test", NoCgroup: after})
				if err != nil {
					t.Fatal(err)
				}
				ended(t, pids)
				if err := k.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
