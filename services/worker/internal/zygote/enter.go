package zygote

import (
	"context"
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
		Enter(...*os.File) (*process.Entry, error)
	})
	if !ok {
		return fmt.Errorf("enter container: %T cannot be entered", container)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	read, write, err := pipe()
	if err != nil {
		return fmt.Errorf("enter container: %w", err)
	}
	defer write.Close()
	defer read.Close()
	entry, err := enters.Enter(read)
	if err != nil {
		return err
	}
	defer entry.Close()
	if begin.Env == nil {
		begin.Env = entry.Env
	}
	told, err := begin.pack()
	if err != nil {
		return fmt.Errorf("enter container: %w", err)
	}
	_, pidfd, err := z.enter(entry)
	if err != nil {
		return fmt.Errorf("enter container: %w", err)
	}
	_ = read.Close()
	// A step that failed has closed the other end: Adopt tells which.
	_, _ = write.Write(told)
	_ = write.Close()
	return entry.Adopt(ctx, pidfd)
}

// pipe is os.Pipe, but it blocks, as the process at one end of it expects.
func pipe() (read, write *os.File, err error) {
	var numbers [2]int
	if err := unix.Pipe2(numbers[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(numbers[0]), "begin"), os.NewFile(uintptr(numbers[1]), "begin"), nil
}

// enter forks the process. It does not leave the zygote's process group before it is
// told Begin: until this process knows of it, it ends with the zygote.
func (z *Zygote) enter(entry *process.Entry) (pid int, pidfd *os.File, err error) {
	pid, err = z.fork(func(ctx context.Context, t *template.Template) (int, error) {
		return t.Enter(ctx, template.Entrance{
			StepsAddress: entry.StepsAddress, StepsBytes: entry.StepsBytes, Code: entry.Code, CodeEntry: entry.CodeEntry,
			Begin: entry.Extra, OutputLimit: z.tree.OutputLimit, Files: entry.Files,
		})
	})
	if err != nil {
		return 0, nil, err
	}
	// It is our child: its number is its own until it is reaped, which is when the zygote
	// has ended in this moment.
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		if err != unix.ESRCH {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}
		return 0, nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	return pid, os.NewFile(uintptr(fd), "pidfd"), nil
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
