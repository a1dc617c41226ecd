// Package archive owns uploaded archives: files named by their SHA-256, shared by
// all Runs that name them, and collected once nobody has for a while.
package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// MaxSize is the largest archive, in bytes.
const MaxSize = 64 << 20

// Why an archive was refused.
var (
	ErrInvalid  = errors.New("archive: no gzip")
	ErrTooLarge = errors.New("archive: too large")
	ErrSum      = errors.New("archive: another sum")
	ErrNotFound = errors.New("archive: not found")
)

const unfinished = ".upload-"

// Shelf is a folder of archives. Safe for concurrent use.
type Shelf struct {
	dir  string
	keep time.Duration
	sync bool

	mu    sync.Mutex // guards holds, and the removal of files against Hold
	holds map[string]int
}

// Open makes the folder if need be, and sweeps what uploads of an earlier life left
// unfinished. An archive that nobody names is kept for keep.
func Open(dir string, keep time.Duration, fsync bool) (*Shelf, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make archive folder: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, unfinished+"*"))
	if err != nil {
		return nil, fmt.Errorf("sweep archive folder: %w", err)
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("sweep archive folder: %w", err)
		}
	}
	return &Shelf{dir: dir, keep: keep, sync: fsync, holds: map[string]int{}}, nil
}

func (s *Shelf) path(sum string) string { return filepath.Join(s.dir, sum) }

// Hold keeps an archive from being collected until release is called, and counts
// as its being named. Errors: ErrNotFound.
func (s *Shelf) Hold(sum string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if err := os.Chtimes(s.path(sum), now, now); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	} else if err != nil {
		return nil, fmt.Errorf("hold archive: %w", err)
	}
	s.holds[sum]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.holds[sum]--; s.holds[sum] == 0 {
			delete(s.holds, sum)
		}
	}, nil
}

// Read opens an archive. Errors: ErrNotFound.
func (s *Shelf) Read(sum string) (io.ReadCloser, error) {
	f, err := os.Open(s.path(sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read archive: %w", err)
	}
	return f, nil
}

// Collect removes the archives that inUse does not know and that were last uploaded,
// held or seen in use longer ago than keep. It returns how many.
func (s *Shelf) Collect(inUse func(sum string) bool) (removed int, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, fmt.Errorf("collect archives: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		gone, err := s.collect(e.Name(), inUse)
		if err != nil {
			errs = append(errs, err)
		}
		if gone {
			removed++
		}
	}
	return removed, errors.Join(errs...)
}

// collect judges one archive with the lock held, so that no Hold comes between. A
// Run that is being created holds its archive until inUse knows the Run.
func (s *Shelf) collect(sum string, inUse func(string) bool) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Stat(s.path(sum))
	if err != nil {
		return false, err
	}
	if inUse(sum) {
		now := time.Now()
		return false, os.Chtimes(s.path(sum), now, now)
	}
	if s.holds[sum] > 0 || time.Since(info.ModTime()) < s.keep {
		return false, nil
	}
	return true, os.Remove(s.path(sum))
}

// Upload is one archive on its way in. Its methods are called one after the other.
type Upload struct {
	shelf *Shelf
	file  *os.File
	hash  hash.Hash
	size  int64
	head  []byte
}

// Begin starts an upload; End must follow.
func (s *Shelf) Begin() (*Upload, error) {
	f, err := os.CreateTemp(s.dir, unfinished)
	if err != nil {
		return nil, fmt.Errorf("begin upload: %w", err)
	}
	return &Upload{shelf: s, file: f, hash: sha256.New()}, nil
}

// Write appends a piece. Errors: ErrTooLarge, ErrInvalid.
func (u *Upload) Write(piece []byte) (int, error) {
	if u.size += int64(len(piece)); u.size > MaxSize {
		return 0, ErrTooLarge
	}
	if missing := 2 - len(u.head); missing > 0 {
		u.head = append(u.head, piece[:min(missing, len(piece))]...)
		if len(u.head) == 2 && (u.head[0] != 0x1f || u.head[1] != 0x8b) {
			return 0, ErrInvalid
		}
	}
	u.hash.Write(piece)
	return u.file.Write(piece)
}

// Commit gives the archive its place and returns its sum and size in bytes. want
// is the sum that it should have, or empty.
// Errors: ErrInvalid where nothing was written, ErrSum.
func (u *Upload) Commit(want string) (sum string, size int64, err error) {
	if len(u.head) < 2 {
		return "", 0, ErrInvalid
	}
	sum = hex.EncodeToString(u.hash.Sum(nil))
	if want != "" && want != sum {
		return "", 0, fmt.Errorf("%w: it is %s", ErrSum, sum)
	}
	if err := u.settle(sum); err != nil {
		return "", 0, fmt.Errorf("commit upload: %w", err)
	}
	return sum, u.size, nil
}

func (u *Upload) settle(sum string) error {
	if u.shelf.sync {
		if err := u.file.Sync(); err != nil {
			return err
		}
	}
	u.shelf.mu.Lock()
	err := os.Rename(u.file.Name(), u.shelf.path(sum))
	u.shelf.mu.Unlock()
	if err != nil || !u.shelf.sync {
		return err
	}
	dir, err := os.Open(u.shelf.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// End gives back what the upload holds; one that was not committed leaves nothing.
func (u *Upload) End() error {
	err := u.file.Close()
	if gone := os.Remove(u.file.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
