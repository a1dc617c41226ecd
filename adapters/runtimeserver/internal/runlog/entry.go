package runlog

import (
	"encoding/json"
	"strings"
	"time"
)

// Entry is one line of a log file.
type Entry struct {
	Time         time.Time `json:"time"`
	RunUID       string    `json:"run_uid"`
	InvocationID string    `json:"invocation_id,omitempty"`
	Level        string    `json:"level"`
	Stream       string    `json:"stream"`
	Seq          uint64    `json:"seq"`
	Message      string    `json:"message"`
	// CutBytes says how many bytes of the message, or for a mark of the stream,
	// are missing.
	CutBytes int64 `json:"cut_bytes,omitempty"`
}

// Levels of entries. Raw streams have LevelInfo: that a line came on stderr does
// not make it an error.
const (
	LevelInfo = "info"
	LevelWarn = "warn"
)

// encode writes the entry with its newline. Bytes that are not UTF-8 are
// replaced.
func (e Entry) encode() []byte {
	e.Message = strings.ToValidUTF8(e.Message, "\ufffd")
	line, err := json.Marshal(e)
	if err != nil {
		return nil // a struct of strings and numbers always encodes
	}
	return append(line, '\n')
}
