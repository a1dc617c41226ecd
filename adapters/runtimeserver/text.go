package runtimeserver

import (
	"strings"
	"unicode/utf8"
)

// maxMessage bounds the one line of an error, in bytes.
const maxMessage = 1 << 10

// clip makes text valid UTF-8 of at most limit bytes, cut at its end on a
// character boundary.
func clip(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= limit {
		return text
	}
	const mark = "…"
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// clipHead cuts at the beginning instead: of a traceback the end tells most.
func clipHead(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= limit {
		return text
	}
	const mark = "…"
	start := len(text) - limit + len(mark)
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return mark + text[start:]
}
