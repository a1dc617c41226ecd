// Package folder owns how a Run's folder is filled: every write goes through a
// Folder, which refuses whatever would leave it, replace what is there, or grow
// past its bounds.
package folder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrRefused is wrapped by every refusal: the source is at fault, not the disk.
var ErrRefused = errors.New("source refused")

// Limits bounds a folder.
type Limits struct {
	// Files counts files and folders.
	Files int
	// Bytes is the sum of all file contents.
	Bytes int64
}

// Folder is one folder that is being filled. It follows no link and writes none.
type Folder struct {
	root   *os.Root
	limits Limits
	// names maps a folded path to the path that took it, files and folders.
	names map[string]name
	bytes int64
}

type name struct {
	path string
	dir  bool
}

// New fills the folder behind root, which the caller closes.
func New(root *os.Root, limits Limits) *Folder {
	return &Folder{root: root, limits: limits, names: map[string]name{}}
}

// Dir makes a folder and those above it. One that is there is no error.
// Errors: ErrRefused, and those of the disk.
func (f *Folder) Dir(p string) error {
	if p == "." {
		return nil
	}
	if err := check(p); err != nil {
		return err
	}
	return f.dir(p)
}

func (f *Folder) dir(p string) error {
	if p == "." {
		return nil
	}
	if err := f.dir(path.Dir(p)); err != nil {
		return err
	}
	fresh, err := f.take(p, true)
	if err != nil || !fresh {
		return err
	}
	return f.root.Mkdir(p, 0o755)
}

// File writes a regular file, and the folders above it.
// Errors: ErrRefused, and those of the disk and of content.
func (f *Folder) File(p string, executable bool, content io.Reader) (err error) {
	if err := check(p); err != nil {
		return err
	}
	if err := f.dir(path.Dir(p)); err != nil {
		return err
	}
	if _, err := f.take(p, false); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if executable {
		mode = 0o755
	}
	out, err := f.root.OpenFile(p, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	left := f.limits.Bytes - f.bytes
	n, err := io.Copy(out, io.LimitReader(content, left+1))
	f.bytes += n
	if n > left {
		return fmt.Errorf("%w: its files hold more than %d bytes in all: leave out what the Run does not need", ErrRefused, f.limits.Bytes)
	}
	return err
}

// take reserves a name. fresh is false for a folder that was made before.
func (f *Folder) take(p string, dir bool) (fresh bool, err error) {
	key := fold(p)
	if had, ok := f.names[key]; ok {
		switch {
		case had.path != p:
			return false, fmt.Errorf("%w: %q and %q differ in upper and lower case only: rename one", ErrRefused, had.path, p)
		case had.dir && dir:
			return false, nil
		case had.dir != dir:
			return false, fmt.Errorf("%w: %q is both a file and a folder", ErrRefused, p)
		}
		return false, fmt.Errorf("%w: %q comes twice", ErrRefused, p)
	}
	if len(f.names) >= f.limits.Files {
		return false, fmt.Errorf("%w: more than %d files and folders", ErrRefused, f.limits.Files)
	}
	f.names[key] = name{p, dir}
	return true, nil
}

func fold(p string) string { return strings.ToLower(strings.ToUpper(p)) }

// check refuses a path that is not a plain relative one.
func check(p string) error {
	switch {
	case p == "" || len(p) > 1024:
		return fmt.Errorf("%w: a path has %d bytes: 1 to 1024 are allowed", ErrRefused, len(p))
	case !utf8.ValidString(p):
		return fmt.Errorf("%w: the path %q is not UTF-8", ErrRefused, p)
	case path.IsAbs(p):
		return fmt.Errorf("%w: the path %q is absolute: make it relative", ErrRefused, p)
	case path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "../"):
		return fmt.Errorf("%w: the path %q has an empty, \".\" or \"..\" part: name the file plainly", ErrRefused, p)
	case strings.ContainsFunc(p, func(r rune) bool { return unicode.IsControl(r) || r == '\\' }):
		return fmt.Errorf("%w: the path %q holds a control character or a backslash", ErrRefused, p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if len(part) > 255 {
			return fmt.Errorf("%w: a name in the path %q has more than 255 bytes", ErrRefused, p)
		}
	}
	return nil
}
