//go:build linux && amd64

package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/internal/plan"
	"github.com/hearth-run/hearth/sandbox/internal/walls"
)

// judge reads what the first process told: the walls' byte, then nothing, is success.
func (l *launch) judge(ctx context.Context, steps plan.Plan, told []byte) error {
	stand := len(told) > 0 && len(told) != 16 && told[0] == walls.WallsStand
	if stand {
		told = told[1:]
	}
	switch {
	case len(told) == 16:
		index, errno := binary.LittleEndian.Uint64(told), binary.LittleEndian.Uint64(told[8:])
		return walls.Explain(steps, l.container.spec, int(index), unix.Errno(errno))
	case stand && len(told) == 0:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return &sandbox.WallError{Wall: "init", Cause: l.died()}
	}
}

// died says why the first process ended without a word.
func (l *launch) died() error {
	if g := l.container.group; g != nil && g.OOMKills() > 0 {
		return fmt.Errorf("the memory limit of %d bytes is too small for the walls", l.container.spec.Limits.Memory)
	}
	return errors.New("the first process was killed from outside")
}

// readExit reads the wait status that the first process tells before it exits.
func readExit(status *os.File) (exit sandbox.Exit, told bool) {
	killed := sandbox.Exit{Code: -1, Signal: unix.SIGKILL}
	if status == nil {
		return killed, false
	}
	defer func() { _ = status.Close() }()
	var word [4]byte
	if _, err := io.ReadFull(status, word[:]); err != nil {
		return killed, false // the first process was killed
	}
	return exitOf(syscall.WaitStatus(binary.LittleEndian.Uint32(word[:]))), true
}

func exitOf(w syscall.WaitStatus) sandbox.Exit {
	if w.Signaled() {
		return sandbox.Exit{Code: -1, Signal: w.Signal()}
	}
	return sandbox.Exit{Code: w.ExitStatus()}
}
