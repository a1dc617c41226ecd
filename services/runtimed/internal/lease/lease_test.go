package lease

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The stories of testdata: event, arrow, state, effects.
func TestStories(t *testing.T) {
	text, err := os.ReadFile("testdata/stories.txt")
	if err != nil {
		t.Fatal(err)
	}
	l := New()
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case line == "new":
			l = New()
		default:
			event, want, ok := strings.Cut(line, " -> ")
			if !ok {
				t.Fatalf("line %d: no arrow", i+1)
			}
			var got string
			if l, got = tell(t, l, event); got != want {
				t.Errorf("line %d: %s\n got %s\nwant %s", i+1, event, got, want)
			}
		}
	}
}

func tell(t *testing.T, l Lease, line string) (Lease, string) {
	words := strings.Fields(line)
	e := Event{Now: duration(t, words[1]), Kind: Kind(words[2])}
	for _, w := range words[3:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "sent":
			e.Sent = duration(t, value)
		case "for":
			e.Length = duration(t, value)
		}
	}
	next, effects, err := l.Apply(e)
	if err != nil {
		return next, "refused: " + err.Error()
	}
	if next.Phase == Held {
		return next, fmt.Sprintf("held until=%v renew=%v %v", next.Deadline, next.RenewAt, effects)
	}
	return next, fmt.Sprintf("%s %v", next.Phase, effects)
}

func duration(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestServing(t *testing.T) {
	l := Lease{Phase: Held, Deadline: 9 * time.Second}
	if !l.Serving(9*time.Second-1) || l.Serving(9*time.Second) || (Lease{Phase: Lost, Deadline: 9 * time.Second}).Serving(0) {
		t.Error("the deadline itself is already outside")
	}
}
