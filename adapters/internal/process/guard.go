package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// guard is a shell that outlives this process by the time that a kill takes. It
// waits on a pipe of which only we hold the other end.
type guard struct {
	pipe *os.File
	cmd  *exec.Cmd
}

// What the guard runs: $0 is the cgroup's folder, or the mark.
const (
	guardCgroup = `trap '' HUP INT TERM; read -r word && exit
[ -d "$0" ] && echo 1 >"$0/cgroup.kill"
for turn in 1 2 3 4 5 6 7 8 9 10; do
  find "$0" -depth -type d -exec rmdir {} \; 2>/dev/null; [ -d "$0" ] || exit
  sleep 0.05
done`
	// One grep looks at all: a shell that starts one for each process falls behind.
	guardMarks = `trap '' HUP INT TERM; read -r word && exit
for turn in 1 2 3; do
  for f in $(grep -lsa "HEARTH_GROUP=$0/" /proc/[0-9]*/environ); do
    p="${f#/proc/}"; kill -9 "${p%/environ}"
  done
done`
)

func startGuard(root cgroup, id string, own *leading) (*guard, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	script, target := guardCgroup, string(root)
	if root == "" {
		script, target = guardMarks, id
	}
	cmd := exec.Command("/bin/sh", "-c", script, target)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdin = read
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := own.begin(func() (int, error) { return run(cmd) }); err != nil {
		return nil, errors.Join(fmt.Errorf("start guard: %w", err), write.Close())
	}
	return &guard{pipe: write, cmd: cmd}, nil
}

// close sends the guard home; nothing is left for it to kill.
func (g *guard) close() error {
	_, err := g.pipe.WriteString("done\n")
	if errors.Is(err, syscall.EPIPE) {
		err = nil // it was killed by somebody
	}
	err = errors.Join(err, g.pipe.Close())
	if e := g.cmd.Wait(); e != nil {
		if _, exited := errors.AsType[*exec.ExitError](e); !exited {
			err = errors.Join(err, e)
		}
	}
	return err
}
