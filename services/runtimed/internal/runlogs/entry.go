package runlogs

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// entry is one line of a log file.
type entry struct {
	Time         time.Time `json:"time"`
	RunUID       string    `json:"run_uid"`
	InvocationID string    `json:"invocation_id"`
	Level        string    `json:"level"`
	Stream       string    `json:"stream"`
	Seq          uint64    `json:"seq"`
	Message      string    `json:"message"`
	CutBytes     int64     `json:"cut_bytes"`
}

// decode reads a line; ok is false for one that was cut by a crash.
func decode(line []byte) (e entry, ok bool) {
	return e, json.Unmarshal(line, &e) == nil && e.Seq > 0
}

func (e entry) wire() *hearthv1.LogEntry {
	return &hearthv1.LogEntry{
		Time: timestamppb.New(e.Time), RunUid: e.RunUID, InvocationId: e.InvocationID, Level: e.Level,
		Stream: e.Stream, Sequence: e.Seq, Message: e.Message, CutBytes: e.CutBytes,
	}
}

// filter says which entries are asked for.
type filter struct {
	invocation string
	since      time.Time
}

func (f filter) wants(e entry) bool {
	return (f.invocation == "" || f.invocation == e.InvocationID) && !e.Time.Before(f.since)
}
