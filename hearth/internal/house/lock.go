package house

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrInUse says that another house lives in the folder.
var ErrInUse = errors.New("another Hearth uses this data folder")

// lockData makes the folder, for our user alone, and takes its lock, which the
// kernel gives back when this process ends, however it ends.
// Errors: ErrInUse with the pid of the other; those of the file system.
func lockData(dir string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Join(dir, "sockets"), 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			pid, _ := os.ReadFile(file.Name())
			err = fmt.Errorf("%w: %s, process %s; stop that one, or name another folder with --data", ErrInUse, dir, strings.TrimSpace(string(pid)))
		}
		return nil, errors.Join(err, file.Close())
	}
	// Whose lock it is, for the message above.
	if err := file.Truncate(0); err == nil {
		_, err = fmt.Fprintln(file, os.Getpid())
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	return file, nil
}
