package runlog

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config bounds a log, in bytes.
type Config struct {
	// FileBytes is where the file is rotated: at most two files of about this size
	// are kept, PATH and PATH.1.
	FileBytes int64
	// LineBytes bounds the message of one entry.
	LineBytes int
	// StreamBytes is the budget of one stream of one invocation.
	StreamBytes int64
}

// Default is 8 MiB a Run, 16 KiB an entry, 512 KiB a stream of an invocation.
func Default() Config {
	return Config{FileBytes: 4 << 20, LineBytes: 16 << 10, StreamBytes: 512 << 10}
}

// Log is the log of one Run. Safe for concurrent use. A log that cannot be
// written loses entries and stops nothing; Err tells.
type Log struct {
	cfg    Config
	folder *Folder
	path   string
	runUID string

	mu     sync.Mutex // guards the fields below
	file   *os.File   // nil before the first entry
	closed bool
	size   int64
	seq    uint64
	err    error
}

// Open returns the log of a Run. Its file is made, or appended to, with the first
// entry: most Runs never write one.
func (f *Folder) Open(runUID string, cfg Config) *Log {
	return &Log{cfg: cfg, folder: f, path: Path(f.dir, runUID), runUID: runUID}
}

// Folder is where the logs of Runs lie. Safe for concurrent use.
type Folder struct {
	dir  string
	keep int

	mu    sync.Mutex // guards fresh
	fresh int        // new files until the next look
}

// NewFolder returns the folder, which is made with the first log, and keeps the
// number of Runs in it within keep, though it looks only after every twentieth
// part of that many new files.
func NewFolder(dir string, keep int) *Folder { return &Folder{dir: dir, keep: keep} }

// admit makes room for a new file.
func (f *Folder) admit() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fresh--; f.fresh >= 0 {
		return nil
	}
	step := max(1, f.keep/20)
	f.fresh = step - 1
	return errors.Join(os.MkdirAll(f.dir, 0o700), Trim(f.dir, f.keep-step))
}

// Trim removes the logs that were written to least lately, beyond keep Runs.
func Trim(dir string, keep int) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(entries) <= keep {
		return err
	}
	written := map[string]time.Time{}
	for _, e := range entries {
		run, ok := strings.CutSuffix(strings.TrimSuffix(e.Name(), ".1"), ".jsonl")
		info, err := e.Info()
		if ok && err == nil && info.ModTime().After(written[run]) {
			written[run] = info.ModTime()
		}
	}
	runs := slices.SortedFunc(maps.Keys(written), func(a, b string) int { return written[a].Compare(written[b]) })
	var errs []error
	for _, run := range runs[:max(0, len(runs)-keep)] {
		errs = append(errs, Remove(dir, run))
	}
	return errors.Join(errs...)
}

// Path returns where the log of a Run is.
func Path(dir, runUID string) string { return filepath.Join(dir, runUID+".jsonl") }

// Remove removes the log of a Run.
func Remove(dir, runUID string) error {
	var errs []error
	for _, path := range []string{Path(dir, runUID), Path(dir, runUID) + ".1"} {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// begin opens the file for the first entry.
func (l *Log) begin() error {
	if err := l.folder.admit(); err != nil {
		l.fail(err)
	}
	if err := l.open(); err != nil {
		return err
	}
	l.seq = lastSeq(l.path)
	return nil
}

func (l *Log) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.size = file, info.Size()
	return nil
}

// write stamps and appends entries, which stay together.
func (l *Log) write(entries ...Entry) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.file == nil {
		if err := l.begin(); err != nil {
			l.fail(err)
			return
		}
	}
	for _, e := range entries {
		l.seq++
		e.RunUID, e.Seq = l.runUID, l.seq
		if e.Time.IsZero() {
			e.Time = now
		}
		line := e.encode()
		if l.size > 0 && l.size+int64(len(line)) > l.cfg.FileBytes {
			l.rotate()
		}
		n, err := l.file.Write(line)
		l.size += int64(n)
		l.fail(err)
	}
}

// fail keeps the first error of many: a full disk would tell itself for ever.
func (l *Log) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// rotate gives the file its second name and begins a new one.
func (l *Log) rotate() {
	err := errors.Join(l.file.Close(), os.Rename(l.path, l.path+".1"), l.open())
	l.fail(err)
}

// Err returns the first failure to write, nil if there was none.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close closes the file; what is written later is dropped.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
