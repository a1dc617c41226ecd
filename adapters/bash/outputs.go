package bash

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// outputsFile is the path that $HEARTH_OUTPUTS names. A call may do with it what
// it likes: the next one finds it empty.
type outputsFile string

// take reads what a call has written and empties the file.
func (p outputsFile) take() (map[string]string, error) {
	data, clean, err := p.read()
	if !clean {
		if e := p.reset(); e != nil && err == nil {
			err = e
		}
	}
	if err != nil {
		return nil, err
	}
	return runtimeserver.ParseOutputs(data)
}

// read returns the file's bytes and whether it is as it was made.
func (p outputsFile) read() (data []byte, clean bool, err error) {
	// A link is not followed, and a FIFO does not block.
	fd, err := unix.Open(string(p), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, edge.Publicf(runtimeserver.ErrOutputsInvalid, "the file that $HEARTH_OUTPUTS names cannot be read: %s", err)
	}
	f := os.NewFile(uintptr(fd), string(p))
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() {
		return nil, false, edge.Publicf(runtimeserver.ErrOutputsInvalid, "$HEARTH_OUTPUTS is no regular file any more: write to it, do not replace it")
	}
	if info.Size() == 0 {
		return nil, info.Mode().Perm() == 0o600, nil
	}
	data, err = io.ReadAll(io.LimitReader(f, runtimeserver.MaxOutputsFile+1))
	return data, false, err
}

// reset makes the file anew, empty.
func (p outputsFile) reset() error {
	if err := os.RemoveAll(string(p)); err != nil {
		return fmt.Errorf("remove outputs file: %w", err)
	}
	// A call may have removed the folder too.
	err := os.MkdirAll(filepath.Dir(string(p)), 0o700)
	if err != nil {
		return fmt.Errorf("make folder of outputs: %w", err)
	}
	f, err := os.OpenFile(string(p), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make outputs file: %w", err)
	}
	return f.Close()
}
