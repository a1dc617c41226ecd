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
// it likes: the next one finds nothing there.
type outputsFile string

// take reads what a call has written and removes the file.
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

// read returns the file's bytes and whether there is nothing to put right.
func (p outputsFile) read() (data []byte, clean bool, err error) {
	// A link is not followed, and a FIFO does not block.
	fd, err := unix.Open(string(p), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, p.writable(), nil
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
	data, err = io.ReadAll(io.LimitReader(f, runtimeserver.MaxOutputsFile+1))
	return data, false, err
}

// writable says whether the next call can make the file.
func (p outputsFile) writable() bool {
	info, err := os.Lstat(filepath.Dir(string(p)))
	return err == nil && info.IsDir() && info.Mode().Perm()&0o700 == 0o700
}

// reset removes whatever has the file's name, and sees to the folder.
func (p outputsFile) reset() error {
	if err := os.RemoveAll(string(p)); err != nil {
		return fmt.Errorf("remove outputs file: %w", err)
	}
	if p.writable() {
		return nil
	}
	// A call may have removed the folder, taken its rights, or put something in its
	// place. No process is left that could do so now.
	dir := filepath.Dir(string(p))
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		return os.Chmod(dir, 0o700)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove what is no folder of outputs: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make folder of outputs: %w", err)
	}
	return nil
}
