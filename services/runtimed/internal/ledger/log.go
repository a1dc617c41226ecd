package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// line is one change: a record, or that it is gone.
type line struct {
	Record
	Gone bool `json:"gone,omitempty"`
}

// log is a file of lines, the latest of a Run counts. It is not synced: the
// records speak of processes of this machine, and none of those outlives a loss
// of power.
type log struct {
	file  *os.File
	size  int64
	lines int
}

// append adds a line, whole or not at all.
func (l *log) append(entry line) error {
	text, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	n, err := l.file.Write(append(text, '\n'))
	if err != nil {
		return errors.Join(err, l.file.Truncate(l.size))
	}
	l.size += int64(n)
	l.lines++
	return nil
}

// read returns the records of a log. A last line that was cut off by the death of
// its writer is as if it had not been begun.
func read(path string) (map[string]Record, error) {
	records := map[string]Record{}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return records, nil
	}
	if err != nil {
		return nil, err
	}
	number := 0
	for row := range bytes.Lines(text) {
		number++
		if !bytes.HasSuffix(row, []byte("\n")) {
			break
		}
		var entry line
		if err := json.Unmarshal(row, &entry); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w: remove the file if this node holds no Runs", path, number, err)
		}
		records[entry.RunUID] = entry.Record
		if entry.Gone {
			delete(records, entry.RunUID)
		}
	}
	return records, nil
}

// rewrite replaces a log by one that has the records and no history.
func rewrite(path string, records map[string]Record) (*log, error) {
	tmp := path + ".new"
	file, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l := &log{file: file}
	for _, r := range records {
		if err := l.append(line{Record: r}); err != nil {
			return nil, errors.Join(err, file.Close(), os.Remove(tmp))
		}
	}
	if err := os.Rename(tmp, path); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(tmp))
	}
	return l, nil
}
