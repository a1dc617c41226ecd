// Package outputs owns the bounds of what user code may answer beside its
// result: names with short texts.
package outputs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Bounds of outputs, in bytes where not counted in keys.
const (
	MaxKeys  = 64
	MaxKey   = 128
	MaxValue = 8 << 10
	MaxTotal = 64 << 10
)

// What can be wrong with outputs.
var (
	ErrInvalid  = errors.New("outputs are invalid")
	ErrTooLarge = errors.New("outputs are too large")
)

// Check tells whether outputs are within their bounds.
// Errors: ErrInvalid, ErrTooLarge, with a text that names key and bound.
func Check(m map[string]string) error {
	if len(m) > MaxKeys {
		return fmt.Errorf("%w: %d keys, at most %d are allowed", ErrTooLarge, len(m), MaxKeys)
	}
	total := 0
	for k, v := range m {
		switch {
		case k == "":
			return fmt.Errorf("%w: a key is empty", ErrInvalid)
		case !utf8.ValidString(k) || !utf8.ValidString(v):
			return fmt.Errorf("%w: %q is not UTF-8", ErrInvalid, k)
		case len(k) > MaxKey:
			return fmt.Errorf("%w: a key has %d bytes, at most %d are allowed", ErrTooLarge, len(k), MaxKey)
		case len(v) > MaxValue:
			return fmt.Errorf("%w: the value of %q has %d bytes, at most %d are allowed", ErrTooLarge, k, len(v), MaxValue)
		}
		total += len(k) + len(v)
	}
	if total > MaxTotal {
		return fmt.Errorf("%w: %d bytes in all, at most %d are allowed", ErrTooLarge, total, MaxTotal)
	}
	return nil
}

// Name is the file of a task's folder that $HEARTH_OUTPUTS names.
const Name = ".hearth-outputs"

// Read reads a task's outputs from its folder. An absent file is no outputs. The
// code that wrote the file is not trusted: links are not followed, and what is no
// regular file is refused without waiting for it.
// Errors: ErrInvalid, ErrTooLarge, those of the disk.
func Read(dir string) (map[string]string, error) {
	fd, err := unix.Open(dir+"/"+Name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, nil
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%w: $HEARTH_OUTPUTS was made a link", ErrInvalid)
	case err != nil:
		return nil, fmt.Errorf("open outputs: %w", err)
	}
	file := os.NewFile(uintptr(fd), Name)
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("open outputs: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: $HEARTH_OUTPUTS is no regular file any more", ErrInvalid)
	}
	const most = MaxTotal + 2*MaxKeys
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, fmt.Errorf("read outputs: %w", err)
	}
	if len(text) > most {
		return nil, fmt.Errorf("%w: $HEARTH_OUTPUTS has more than %d bytes", ErrTooLarge, most)
	}
	return Parse(text)
}

// Parse reads lines of KEY=VALUE; of two lines with one key the later counts.
// Errors: ErrInvalid, ErrTooLarge.
func Parse(text []byte) (map[string]string, error) {
	out := map[string]string{}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) == 0 {
			continue
		}
		k, v, ok := bytes.Cut(line, []byte("="))
		if !ok {
			return nil, fmt.Errorf("%w: a line of $HEARTH_OUTPUTS has no \"=\"", ErrInvalid)
		}
		out[string(k)] = string(v)
	}
	return out, Check(out)
}
