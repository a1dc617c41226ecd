package runlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
)

// Read returns the entries of a Run's log with a seq above after, oldest first,
// at most limit of them (0: all). A Run without a log has none.
func Read(dir, runUID string, after uint64, limit int) ([]Entry, error) {
	var entries []Entry
	for _, path := range []string{Path(dir, runUID) + ".1", Path(dir, runUID)} {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(data) {
			if limit > 0 && len(entries) == limit {
				break
			}
			var e Entry
			// The last line may be half written, after a crash or just now.
			if json.Unmarshal(line, &e) == nil && e.Seq > after {
				entries = append(entries, e)
			}
		}
	}
	return entries, nil
}

// lastSeq returns the seq of the last whole entry of a file, 0 if there is none.
func lastSeq(path string) uint64 {
	for _, path := range []string{path, path + ".1"} {
		if seq := lastSeqIn(path); seq > 0 {
			return seq
		}
	}
	return 0
}

func lastSeqIn(path string) uint64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	var last uint64
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return last
		}
		var e struct {
			Seq uint64 `json:"seq"`
		}
		if json.Unmarshal(line, &e) == nil {
			last = max(last, e.Seq)
		}
	}
}
