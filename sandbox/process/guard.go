//go:build linux && amd64

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox/internal/cgroup"
)

// guard is a shell that outlives the driver's process by the time that a kill takes,
// and removes what the kernel does not: control groups, and Config.Transient's
// contents. It waits on a pipe of which only we hold the other end, and holds
// guard.lock for as long as it lives, which the next life waits for.
type guard struct {
	pipe  *os.File
	cmd   *exec.Cmd
	leave func() error // dismiss, once
}

// guardScript: $0 is cgroups.json, which goes when the groups have gone, as after
// Close; $1 the transient folder, or empty; the rest the groups' parents. What it
// cannot remove in five seconds, the next Open does, or says why.
const guardScript = `trap '' HUP INT TERM; read -r word && exit
exec 2>/dev/null; transient=$1; shift; turn=0
while [ $turn -lt 100 ]; do
  left=
  for parent; do
    for group in "$parent"/*/; do
      if [ -e "$group/cgroup.kill" ]; then echo 1 >"$group/cgroup.kill"
      elif [ -e "$group/cgroup.procs" ]; then
        while read -r pid; do kill -9 "$pid"; done <"$group/cgroup.procs"
      fi
      rmdir "$group"
    done
    rmdir "$parent"; [ -d "$parent" ] && left=1
  done
  [ "$left" ] || break
  turn=$((turn + 1)); sleep 0.05
done
[ "$transient" ] && find "$transient" -mindepth 1 -delete
[ "$left" ] || rm -f "$0"`

// startGuard returns nil where there is nothing to guard.
func (s *state) startGuard(parent *cgroup.Parent, transient string) (*guard, error) {
	if parent == nil && transient == "" {
		return nil, nil
	}
	lock, err := s.guardLock()
	if err != nil {
		return nil, err
	}
	// The lock is the open file's, which is the guard's alone once this end is closed.
	defer func() { _ = lock.Close() }()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = read.Close() }()
	args := []string{"-c", guardScript, s.cgroupsFile(), transient}
	if parent != nil {
		args = append(args, parent.Folders()...)
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdin, cmd.ExtraFiles = read, []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start guard: %w", err), write.Close())
	}
	g := &guard{pipe: write, cmd: cmd}
	g.leave = sync.OnceValue(g.dismiss)
	return g, nil
}

// close sends the guard home, if there is one; it may be repeated.
func (g *guard) close() error {
	if g == nil {
		return nil
	}
	return g.leave()
}

func (g *guard) dismiss() error {
	_, err := g.pipe.WriteString("done\n")
	if errors.Is(err, syscall.EPIPE) {
		err = nil // it was killed by somebody
	}
	err = errors.Join(err, g.pipe.Close())
	var exited *exec.ExitError
	if e := g.cmd.Wait(); e != nil && !errors.As(e, &exited) {
		err = errors.Join(err, e)
	}
	return err
}

// guardLock opens guard.lock and takes it, if nobody holds it.
func (s *state) guardLock() (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(s.dir, "guard.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// awaitGuard returns when no guard of an earlier life works on this folder any more.
func (s *state) awaitGuard(patience time.Duration) error {
	end := time.Now().Add(patience)
	for {
		lock, err := s.guardLock()
		switch {
		case err == nil:
			return lock.Close()
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("look for the guard of an earlier life: %w", err)
		case time.Now().After(end):
			return fmt.Errorf("the guard of an earlier life still removes what that left, after %v", patience)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
