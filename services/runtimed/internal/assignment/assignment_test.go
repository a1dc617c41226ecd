package assignment

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// The stories of testdata: event, arrow, state, effects.
func TestStories(t *testing.T) {
	text, err := os.ReadFile("testdata/stories.txt")
	if err != nil {
		t.Fatal(err)
	}
	var s State
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "begin "):
			s = Begin(Mode(strings.TrimPrefix(line, "begin ")))
		default:
			event, want, ok := strings.Cut(line, " -> ")
			if !ok {
				t.Fatalf("line %d: no arrow", i+1)
			}
			var got string
			if s, got = tell(s, event); got != want {
				t.Errorf("line %d: %s\n got %s\nwant %s", i+1, event, got, want)
			}
		}
	}
}

func tell(s State, line string) (State, string) {
	words := strings.Fields(line)
	e := Event{Kind: Kind(words[0]), Drain: slices.Contains(words, "drain")}
	if len(words) > 1 {
		e.Reason = words[1]
	}
	next, effects, err := s.Apply(e)
	if err != nil {
		return next, "refused: " + err.Error()
	}
	out := string(next.Phase)
	if next.Outcome != "" {
		out += " " + string(next.Outcome)
	}
	if next.Reason != "" {
		out += " " + next.Reason
	}
	if next.Drain {
		out += " drain"
	}
	return next, fmt.Sprintf("%s %v", out, effects)
}

// Every phase but the last has a way out for the events that come from outside,
// so that nothing stays stuck on a node.
func TestOutsideEventsAlwaysHaveAPlace(t *testing.T) {
	for _, phase := range []Phase{Preparing, Registering, Ready, Executing, Releasing, Reporting, Forgetting} {
		for _, kind := range []Kind{Fail, Release, Refused, Fence} {
			if _, _, err := (State{Phase: phase}).Apply(Event{Kind: kind}); err != nil {
				t.Error(err)
			}
		}
	}
}
