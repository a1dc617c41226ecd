package runlogs

import (
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

// Bounds of one message: entries, and bytes of their lines (the last entry not
// counted).
const (
	batchEntries = 256
	batchBytes   = 256 << 10
)

// tail makes messages of a log. It remembers where it is.
type tail struct {
	reader *reader
	filter filter
	// last is the seq of the last entry that was read.
	last uint64
	// seen: an entry of this log was read; before that, last is what the caller
	// remembers.
	seen bool
	// newest is the highest seq that was read and passed over as known.
	newest uint64
}

// batch returns the next message; nil where nothing new is there now.
func (t *tail) batch() (*hearthv1.TailLogsResponse, error) {
	out := &hearthv1.TailLogsResponse{}
	read, size := false, 0
	err := t.reader.read(func(line []byte) bool {
		e, ok := decode(line)
		if !ok || !t.advance(e, out) {
			return true
		}
		read = true
		if t.filter.wants(e) {
			out.Entries = append(out.Entries, e.wire())
			size += len(line)
		}
		return len(out.GetEntries()) < batchEntries && size < batchBytes
	})
	if err != nil || !read {
		return nil, err
	}
	out.Sequence = t.last
	return out, nil
}

// advance moves on to an entry; false: it is known already.
func (t *tail) advance(e entry, out *hearthv1.TailLogsResponse) bool {
	if e.Seq <= t.last {
		t.newest = max(t.newest, e.Seq)
		if !t.seen || e.Seq != 1 {
			return false
		}
		t.last = 0 // the log was removed and begun anew while it was read
	}
	if t.last > 0 || t.seen {
		out.Missed += e.Seq - t.last - 1
	}
	t.last, t.seen = e.Seq, true
	return true
}

// anew says whether the log that is there is another one than the caller
// remembers: it was read to its end, and its count is not that far yet.
func (t *tail) anew() bool { return !t.seen && t.last > 0 && t.newest < t.last }
