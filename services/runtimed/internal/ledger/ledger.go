// Package ledger owns what a node must know of its former process: its uid, and
// what that process had begun on the Runtime Server. One process at a time holds
// a ledger.
package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrBusy says that another process holds the ledger.
var ErrBusy = errors.New("another process holds it")

// Record is what was begun for one attempt of one Run. It is written before the
// thing is begun.
type Record struct {
	RunUID  string `json:"run_uid"`
	Attempt int32  `json:"attempt"`
	// SourceIdentity is set once the folder is whole.
	SourceIdentity string `json:"source_identity,omitempty"`
	// Register is the encoded RegisterFunctionRequest, set before it is first sent;
	// RegistrationID is set once an answer said it.
	Register       []byte `json:"register,omitempty"`
	RegistrationID string `json:"registration_id,omitempty"`
	// ExecutionID is set before a task is executed.
	ExecutionID string `json:"execution_id,omitempty"`
}

// Ledger is the records of one node. Safe for concurrent use.
type Ledger struct {
	dir  string
	lock *os.File

	mu      sync.Mutex // guards what follows
	records map[string]Record
	log     *log
}

// Open makes the folder if need be and takes its lock, which the kernel gives
// back when the process dies. predecessor is the uid of the process that held it
// before, which is dead then; "" for none.
// Errors: ErrBusy, those of the disk.
func Open(dir string) (l *Ledger, predecessor string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("make ledger: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("open ledger: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, "", errors.Join(fmt.Errorf("lock ledger %s: %w", dir, err), lock.Close())
	}
	l = &Ledger{dir: dir, lock: lock}
	if predecessor, err = l.load(); err != nil {
		return nil, "", errors.Join(fmt.Errorf("read ledger: %w", err), lock.Close())
	}
	return l, predecessor, nil
}

func (l *Ledger) load() (predecessor string, err error) {
	uid, err := os.ReadFile(l.uidFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if l.records, err = read(l.logFile()); err != nil {
		return "", err
	}
	l.log, err = rewrite(l.logFile(), l.records)
	return strings.TrimSpace(string(uid)), err
}

// Close gives the lock back.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Said, not left to the close: a process that is just being started has a copy of
	// the descriptor, and with it the lock, until its program begins.
	unlocked := unix.Flock(int(l.lock.Fd()), unix.LOCK_UN)
	return errors.Join(l.log.file.Close(), unlocked, l.lock.Close())
}

// SetUID records under which uid this process is known from now on.
func (l *Ledger) SetUID(uid string) error {
	tmp := l.uidFile() + ".new"
	if err := os.WriteFile(tmp, []byte(uid+"\n"), 0o600); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	if err := os.Rename(tmp, l.uidFile()); err != nil {
		return errors.Join(fmt.Errorf("write ledger: %w", err), os.Remove(tmp))
	}
	return nil
}

// Put stores a record in place of the one that the Run had.
func (l *Ledger) Put(r Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.log.append(line{Record: r}); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	l.records[r.RunUID] = r
	return l.compact()
}

// Delete forgets a Run. An absent record is no error.
func (l *Ledger) Delete(runUID string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.records[runUID]; !ok {
		return nil
	}
	if err := l.log.append(line{Record: Record{RunUID: runUID}, Gone: true}); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	delete(l.records, runUID)
	return l.compact()
}

// compact rewrites the log once most of it is history.
func (l *Ledger) compact() error {
	if l.log.lines < 1000+4*len(l.records) {
		return nil
	}
	fresh, err := rewrite(l.logFile(), l.records)
	if err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	old := l.log
	l.log = fresh
	return old.file.Close()
}

// Get returns the record of a Run; ok is false where there is none.
func (l *Ledger) Get(runUID string) (r Record, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok = l.records[runUID]
	return r, ok
}

// Runs lists the Runs that have a record, in order.
func (l *Ledger) Runs() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.records))
}

func (l *Ledger) uidFile() string { return filepath.Join(l.dir, "uid") }
func (l *Ledger) logFile() string { return filepath.Join(l.dir, "runs.log") }
