package zygote

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/pyrunner/message"
	"github.com/hearth-run/hearth/pyrunner/template"
	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
)

// maxBegin is what fits into an empty pipe, in bytes: telling it never waits.
const maxBegin = 64 << 10

// Begin is what the executor of an entered container is told when it begins.
type Begin struct {
	// Env is the whole environment, as NAME=VALUE, in place of the Spec's; nil is the
	// Spec's. It never passes through the zygote.
	Env []string
}

// Enter forks a process into a created container, in place of its Start. Descriptors 3
// and 4 of the container (Spec.Files) are the executor's control socket and listener,
// on which it says Ready next. Spec.Argv is not used. Many may be called at once: forks
// come one after another, the walls go up side by side.
// Errors: those of Start, ErrEnded, *template.RefusedError. After an error only Destroy
// is left to do with the container.
func (z *Zygote) Enter(ctx context.Context, container sandbox.Container, begin Begin) error {
	enters, ok := container.(interface {
		Enter() (*process.Entry, error)
	})
	if !ok {
		return fmt.Errorf("enter container: %T cannot be entered", container)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	entry, err := enters.Enter()
	if err != nil {
		return err
	}
	defer entry.Close()
	if begin.Env == nil {
		begin.Env = entry.Env
	}
	pidfd, err := z.enter(entry, begin)
	if err != nil {
		return fmt.Errorf("enter container: %w", err)
	}
	return entry.Adopt(ctx, pidfd)
}

// enter forks the process, lets it begin, and returns its pidfd.
func (z *Zygote) enter(entry *process.Entry, begin Begin) (*os.File, error) {
	told, err := begin.pack()
	if err != nil {
		return nil, err
	}
	_, pidfd, write, err := z.forkInto(entry)
	if err != nil {
		return nil, err
	}
	defer write.Close()
	// A step that failed has closed the other end: Adopt tells which.
	_, _ = write.Write(told)
	return pidfd, nil
}

// forkInto forks the process. It does not leave the zygote's process group before it is
// told Begin over the pipe: until this process knows of it, it ends with the zygote.
func (z *Zygote) forkInto(entry *process.Entry) (pid int, pidfd, begin *os.File, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil { // os.Pipe's do not block
		return 0, nil, nil, err
	}
	read, write := os.NewFile(uintptr(pipe[0]), "begin"), os.NewFile(uintptr(pipe[1]), "begin")
	defer read.Close()
	pid, err = z.fork(func(ctx context.Context, t *template.Template) (int, error) {
		return t.Enter(ctx, template.Entrance{
			Steps: entry.Steps, StepsAddress: entry.StepsAddress, Code: entry.Code, CodeEntry: entry.CodeEntry,
			FirstControl: entry.FirstControl, OutputLimit: z.tree.OutputLimit, Files: append(entry.Files, read),
		})
	})
	if err != nil {
		return 0, nil, nil, errors.Join(err, write.Close())
	}
	// It is our child: its number is its own until it is reaped.
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return 0, nil, nil, errors.Join(fmt.Errorf("open process %d: %w", pid, err), write.Close())
	}
	return pid, os.NewFile(uintptr(fd), "pidfd"), write, nil
}

func (b Begin) pack() ([]byte, error) {
	fields := make([]any, 0, len(b.Env))
	for _, variable := range b.Env {
		fields = append(fields, variable)
	}
	packed := message.Append(nil, message.Begin, fields...)
	if len(packed) > maxBegin {
		return nil, fmt.Errorf("env: %d bytes, at most %d; give more to the function as an argument", len(packed), maxBegin)
	}
	return packed, nil
}
