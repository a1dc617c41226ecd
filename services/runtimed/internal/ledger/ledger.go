// Package ledger owns what a node must know of its former process: its uid, and
// what that process had begun on the Runtime Server. One process at a time holds
// a ledger.
package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// Ledger is a folder of records. Methods are safe for concurrent use on different
// Runs.
type Ledger struct {
	dir  string
	lock *os.File
}

// Open makes the folder if need be and takes its lock, which the kernel gives
// back when the process dies. predecessor is the uid of the process that held it
// before, which is dead then; "" for none.
// Errors: ErrBusy, those of the disk.
func Open(dir string) (l *Ledger, predecessor string, err error) {
	if err := os.MkdirAll(filepath.Join(dir, "runs"), 0o700); err != nil {
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
	l = &Ledger{dir, lock}
	uid, err := os.ReadFile(l.uidFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", errors.Join(fmt.Errorf("read ledger: %w", err), lock.Close())
	}
	return l, strings.TrimSpace(string(uid)), nil
}

// Close gives the lock back.
func (l *Ledger) Close() error { return l.lock.Close() }

// SetUID records under which uid this process is known from now on.
func (l *Ledger) SetUID(uid string) error { return l.write(l.uidFile(), []byte(uid+"\n")) }

// Put stores a record in place of the one that the Run had.
func (l *Ledger) Put(r Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	return l.write(l.file(r.RunUID), text)
}

// Delete forgets a Run. An absent record is no error.
func (l *Ledger) Delete(runUID string) error {
	if err := os.Remove(l.file(runUID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write ledger: %w", err)
	}
	return nil
}

// Get returns the record of a Run; ok is false where there is none.
func (l *Ledger) Get(runUID string) (r Record, ok bool, err error) {
	text, err := os.ReadFile(l.file(runUID))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("read ledger: %w", err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, false, fmt.Errorf("read ledger %s: %w", l.file(runUID), err)
	}
	return r, true, nil
}

// Runs lists the Runs that have a record, and sweeps what a write that was cut
// off left behind.
func (l *Ledger) Runs() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(l.dir, "runs"))
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	var uids []string
	for _, e := range entries {
		if uid, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			uids = append(uids, uid)
		}
	}
	return uids, nil
}

func (l *Ledger) uidFile() string           { return filepath.Join(l.dir, "uid") }
func (l *Ledger) file(runUID string) string { return filepath.Join(l.dir, "runs", runUID+".json") }

// write replaces a file at once. It does not sync: the records speak of
// processes of this machine, and none of those outlives a loss of power.
func (l *Ledger) write(file string, text []byte) error {
	tmp := file + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return fmt.Errorf("write ledger: %w", err)
	}
	if err := os.Rename(tmp, file); err != nil {
		return errors.Join(fmt.Errorf("write ledger: %w", err), os.Remove(tmp))
	}
	return nil
}
