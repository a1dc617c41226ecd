package runlogs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Bounds of a reader, in bytes.
const (
	chunk = 64 << 10
	// maxLine is more than an entry can have, escapes included; a longer line is
	// none of an adapter's and is passed over.
	maxLine = 8 << 20
)

// reader reads the log of one Run forward, over rotations. Not for concurrent use.
type reader struct {
	path string
	file *os.File // nil before the first file is there
	// rest is what was read of the file and is no whole line yet.
	rest []byte
	// skipping: the line that rest belongs to is too long.
	skipping bool
	// whole: the file will not grow any more.
	whole bool
}

func newReader(dir, runUID string) *reader {
	return &reader{path: filepath.Join(dir, runUID+".jsonl")}
}

func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
		r.file = nil
	}
}

// read passes whole lines to each until it says no more, or until there are none
// now.
func (r *reader) read(each func(line []byte) (more bool)) error {
	if r.file == nil {
		if opened, err := r.open(); err != nil || !opened {
			return err
		}
	}
	for r.lines(each) {
		n, err := r.fill()
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		if on, err := r.atEnd(); err != nil || !on {
			return err
		}
	}
	return nil
}

// atEnd says whether there is more to read after the end of the file. A file that
// was rotated is read to its end once more before the next one: the writer may
// have written between our last read and the rename.
func (r *reader) atEnd() (on bool, err error) {
	if r.whole {
		return r.next()
	}
	r.whole = !r.current(r.path)
	return r.whole, nil
}

// open opens the oldest file that there is.
func (r *reader) open() (bool, error) {
	for _, path := range []string{r.path + ".1", r.path} {
		file, err := os.Open(path)
		if err == nil {
			r.take(file)
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return false, nil
}

func (r *reader) take(file *os.File) {
	r.close()
	r.file, r.rest, r.skipping, r.whole = file, r.rest[:0], false, false
}

// current says whether a path still leads to the file that is read.
func (r *reader) current(path string) bool {
	mine, err := r.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// next goes on to the file after this one: the one being written, where this one
// is the one before it, else the older of the two that are there.
func (r *reader) next() (bool, error) {
	path := r.path + ".1"
	if r.current(path) {
		path = r.path
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && path != r.path {
		file, err = os.Open(r.path) // the log was removed and begun anew
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // between the rename and the new file, or removed
	}
	if err != nil {
		return false, err
	}
	r.take(file)
	return true, nil
}

// fill reads on; 0 is the end of the file for now.
func (r *reader) fill() (int, error) {
	if len(r.rest) > maxLine {
		r.rest, r.skipping = r.rest[:0], true
	}
	if cap(r.rest)-len(r.rest) < chunk {
		grown := make([]byte, len(r.rest), 2*len(r.rest)+chunk)
		copy(grown, r.rest)
		r.rest = grown
	}
	n, err := r.file.Read(r.rest[len(r.rest) : len(r.rest)+chunk])
	r.rest = r.rest[:len(r.rest)+n]
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// lines passes on the whole lines of rest and keeps what follows them.
func (r *reader) lines(each func([]byte) bool) (more bool) {
	left := r.rest
	defer func() { r.rest = r.rest[:copy(r.rest, left)] }()
	for {
		i := bytes.IndexByte(left, '\n')
		if i < 0 {
			return true
		}
		line := left[:i]
		left = left[i+1:]
		if r.skipping {
			r.skipping = false
			continue
		}
		if !each(line) {
			return false
		}
	}
}
