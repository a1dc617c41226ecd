package runlog

import (
	"bytes"
	"fmt"
	"time"
)

// Stream cuts the bytes of one stream of one invocation into entries. For one
// writer; Close ends the last line.
type Stream struct {
	log          *Log
	invocationID string
	name         string
	line         line
	written      int64 // bytes of messages that went out as they came
	tail         tail
	closed       bool
}

// Stream returns a writer for one stream of one invocation.
func (l *Log) Stream(invocationID, name string) *Stream {
	return &Stream{
		log: l, invocationID: invocationID, name: name,
		line: line{limit: l.cfg.LineBytes},
		tail: tail{limit: l.cfg.StreamBytes / 2},
	}
}

// Entry writes one entry with a level of its own, cut to the bound of a line.
func (l *Log) Entry(invocationID, stream, level, message string) {
	cut := line{limit: l.cfg.LineBytes}
	cut.add([]byte(message))
	text, missing := cut.take()
	l.write(Entry{InvocationID: invocationID, Stream: stream, Level: level, Message: text, CutBytes: missing})
}

// Write never fails: what is beyond the budget is counted.
func (s *Stream) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && !s.closed {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.line.add(p)
			break
		}
		s.line.add(p[:end])
		s.emit()
		p = p[end+1:]
	}
	return n, nil
}

// Close writes the last line, if it was begun, and the tail with its mark. It may
// be repeated.
func (s *Stream) Close() error {
	if s.closed {
		return nil
	}
	if s.line.begun {
		s.emit()
	}
	s.closed = true
	s.flush()
	return nil
}

func (s *Stream) emit() {
	text, cut := s.line.take()
	e := Entry{Time: time.Now(), InvocationID: s.invocationID, Level: LevelInfo, Stream: s.name, Message: text, CutBytes: cut}
	if s.tail.empty() && s.written+e.cost() <= s.log.cfg.StreamBytes/2 {
		s.written += e.cost()
		s.log.write(e)
		return
	}
	s.tail.add(e)
}

// cost is what an entry takes of a budget: empty lines are not free.
func (e Entry) cost() int64 { return int64(len(e.Message)) + 32 }

func (s *Stream) flush() {
	if s.tail.empty() {
		return
	}
	entries := s.tail.entries
	if s.tail.lines > 0 {
		mark := Entry{
			Time: time.Now(), InvocationID: s.invocationID, Level: LevelWarn, Stream: s.name, CutBytes: s.tail.bytes,
			Message: fmt.Sprintf("[hearth: %d lines, %d bytes of this stream were cut here]", s.tail.lines, s.tail.bytes),
		}
		entries = append([]Entry{mark}, entries...)
	}
	s.log.write(entries...)
	s.tail = tail{}
}

// tail keeps the last entries that fit.
type tail struct {
	limit   int64
	entries []Entry
	size    int64
	lines   int64 // what was dropped
	bytes   int64
}

func (t *tail) empty() bool { return len(t.entries) == 0 && t.lines == 0 }

func (t *tail) add(e Entry) {
	t.entries = append(t.entries, e)
	t.size += e.cost()
	drop := 0
	for t.size > t.limit && drop < len(t.entries)-1 {
		old := t.entries[drop]
		t.size -= old.cost()
		t.lines++
		t.bytes += int64(len(old.Message)) + old.CutBytes + 1
		drop++
	}
	if drop > 0 {
		clear(t.entries[:drop])
		t.entries = t.entries[drop:]
	}
}
