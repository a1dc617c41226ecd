package runlog

import (
	"fmt"
	"unicode/utf8"
)

// line gathers one line in bounded memory: its head, and the last bytes of what
// follows.
type line struct {
	limit int
	begun bool
	head  []byte
	ring  []byte // at most limit/2 bytes once it is trimmed
	total int64
}

func (l *line) add(p []byte) {
	l.begun = true
	l.total += int64(len(p))
	half := l.limit / 2
	if room := half - len(l.head); room > 0 {
		n := min(room, len(p))
		l.head = append(l.head, p[:n]...)
		p = p[n:]
	}
	if len(p) > half {
		l.ring = l.ring[:0]
		p = p[len(p)-half:]
	}
	l.ring = append(l.ring, p...)
	if len(l.ring) > 2*half { // trimmed seldom, so that it costs little
		l.ring = append(l.ring[:0], l.ring[len(l.ring)-half:]...)
	}
}

// take returns the line with the count of the bytes that are missing in its
// middle, and begins a new one.
func (l *line) take() (string, int64) {
	half := l.limit / 2
	ring := l.ring
	if len(ring) > half {
		ring = ring[len(ring)-half:]
	}
	cut := l.total - int64(len(l.head)) - int64(len(ring))
	text := string(l.head) + string(ring)
	if cut > 0 {
		head, end := trimEnd(l.head), trimStart(ring)
		cut = l.total - int64(len(head)) - int64(len(end))
		text = fmt.Sprintf("%s[hearth: %d bytes of this line were cut here]%s", head, cut, end)
	}
	l.begun, l.total = false, 0
	l.head, l.ring = reuse(l.head), reuse(l.ring)
	return text, cut
}

// reuse keeps small buffers and lets large ones go.
func reuse(b []byte) []byte {
	if cap(b) > 4<<10 {
		return nil
	}
	return b[:0]
}

// trimEnd drops a character that was cut in half.
func trimEnd(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(b)); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}

func trimStart(b []byte) []byte {
	for i := range min(utf8.UTFMax, len(b)) {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}
