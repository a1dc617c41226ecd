package registration

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var kinds = []Kind{Loaded, LoadFailed, LoadInvalid, Invoke, Ended, Lost, Unregister, UnregisterNow, DrainDeadline, Supersede, Stop, Closed}

var phases = []Phase{Registering, Ready, Busy, Draining, Failed, Closing, Gone}

// Stories are scripts: "@SECONDS event [argument] -> phase[, in flight] effects…"
// or "-> refused". Time is seconds since the story began.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.story")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { tell(t, file) })
	}
}

func tell(t *testing.T, file string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	begin := time.Unix(1000, 0)
	var state State
	number := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		number++
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		left, want, ok := strings.Cut(line, "->")
		if !ok {
			t.Fatalf("%s:%d: no arrow", file, number)
		}
		got := play(t, &state, strings.Fields(left), begin)
		if want = strings.Join(strings.Fields(want), " "); got != want {
			t.Errorf("%s:%d: %s\n got %s\nwant %s", file, number, strings.TrimSpace(left), got, want)
		}
	}
}

// play does one line and returns what came out of it.
func play(t *testing.T, state *State, words []string, begin time.Time) string {
	t.Helper()
	if words[0] == "start" {
		next, effects := Start()
		*state = next
		return show(next, effects, begin)
	}
	seconds, err := time.ParseDuration(strings.TrimPrefix(words[0], "@") + "s")
	if err != nil {
		t.Fatal(err)
	}
	e := Event{Kind: Kind(words[1])}
	if rest := strings.Join(words[2:], " "); e.Kind == Unregister {
		if e.Drain, err = time.ParseDuration(rest); err != nil {
			t.Fatal(err)
		}
	} else {
		e.Text = strings.Trim(rest, `"`)
	}
	next, effects, err := Step(*state, e, begin.Add(seconds))
	var refusal *Refusal
	if errors.As(err, &refusal) {
		if next != *state {
			t.Errorf("a refusal changed the state: %+v", next)
		}
		return "refused"
	}
	*state = next
	return show(next, effects, begin)
}

func show(s State, effects []Effect, begin time.Time) string {
	words := []string{string(s.Phase)}
	if s.InFlight {
		words = append(words, "in-flight")
	}
	if !s.LastActivity.IsZero() {
		words = append(words, fmt.Sprintf("active@%g", s.LastActivity.Sub(begin).Seconds()))
	}
	if s.Fatal != "" {
		words = append(words, fmt.Sprintf("fatal=%q", s.Fatal))
	}
	if !s.DrainUntil.IsZero() {
		words = append(words, fmt.Sprintf("until@%g", s.DrainUntil.Sub(begin).Seconds()))
	}
	if s.Cause != "" {
		words = append(words, "cause="+string(s.Cause))
	}
	words = append(words, "|")
	for _, e := range effects {
		words = append(words, string(e))
	}
	return strings.Join(words, " ")
}

// Whatever happens, the machine keeps its promises.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := Start()
		now := time.Unix(1000, 0)
		loading, running, closing := true, false, false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			e := Event{Kind: rapid.SampledFrom(kinds).Draw(t, "event"), Text: "x", Drain: time.Second}
			// The world reports only what can be.
			switch e.Kind {
			case Loaded, LoadFailed, LoadInvalid:
				if !loading {
					continue
				}
				loading = false
			case Ended, Lost:
				if !running {
					continue
				}
				running = false
			case Closed:
				if !closing {
					continue
				}
				closing = false
			}
			now = now.Add(time.Millisecond)
			before := s
			next, effects, err := Step(s, e, now)
			if err != nil {
				world := slices.Contains([]Kind{Loaded, LoadFailed, LoadInvalid, Ended, Lost, Closed}, e.Kind)
				if world {
					t.Fatalf("%s is true and was refused in %s", e.Kind, before.Phase)
				}
				continue
			}
			s = next
			for _, effect := range effects {
				switch effect {
				case StartInvocation:
					if running {
						t.Fatal("two invocations at once")
					}
					running = true
				case Close:
					if closing || running || loading {
						t.Fatalf("closes while closing %v, running %v, loading %v", closing, running, loading)
					}
					closing = true
				case Release:
					if closing || running || loading {
						t.Fatal("released too early")
					}
				}
			}
			if s.InFlight != running {
				t.Fatalf("in flight %v, running %v in %s", s.InFlight, running, s.Phase)
			}
			if before.Phase == Closing && s.Phase != Closing && s.Phase != Gone {
				t.Fatalf("came back from closing to %s", s.Phase)
			}
		}
	})
}

// Every pair of phase and event is decided: by a row or by a refusal that names
// both. The table has no row that cannot be read in doc.go's drawing.
func TestTableIsTotal(t *testing.T) {
	for phase := range table {
		if !slices.Contains(phases, phase) {
			t.Errorf("unknown phase %q", phase)
		}
		for kind, row := range table[phase] {
			if !slices.Contains(kinds, kind) || !slices.Contains(phases, row.to) {
				t.Errorf("row %s %s -> %s is not in the lists", phase, kind, row.to)
			}
		}
	}
	_, _, err := Step(State{Phase: Gone}, Event{Kind: Invoke}, time.Now())
	if err == nil || !strings.Contains(err.Error(), "gone") || !strings.Contains(err.Error(), "invoke") {
		t.Errorf("refusal: %v", err)
	}
}

func TestJudge(t *testing.T) {
	one := Identity{1, "sha256:a"}
	for _, tc := range []struct {
		name            string
		wanted, current Identity
		phase           Phase
		highest         int32
		want            Verdict
	}{
		{"first", one, Identity{}, "", 0, Accept},
		{"again after unregister", one, Identity{}, "", 1, Accept},
		{"late after unregister", one, Identity{}, "", 2, Stale},
		{"repeat while loading", one, one, Registering, 1, Join},
		{"repeat when ready", one, one, Ready, 1, Join},
		{"repeat when failed", one, one, Failed, 1, Join},
		{"repeat while draining", one, one, Draining, 1, BeingEnded},
		{"repeat while closing", one, one, Closing, 1, BeingEnded},
		{"other digest", Identity{1, "sha256:b"}, one, Ready, 1, Mismatch},
		{"lower", one, Identity{2, "sha256:a"}, Ready, 2, Stale},
		{"higher", Identity{3, "sha256:b"}, one, Busy, 1, Replace},
		{"higher while closing", Identity{3, "sha256:b"}, one, Closing, 1, Replace},
	} {
		if got := Judge(tc.wanted, tc.current, tc.phase, tc.highest); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestAttempts(t *testing.T) {
	now := time.Unix(1000, 0)
	a := NewAttempts(time.Hour, 3)
	a.Note("a", 5, now)
	a.Note("a", 3, now)
	if got := a.Highest("a", now.Add(time.Hour-1)); got != 5 {
		t.Errorf("a: %d", got)
	}
	if got := a.Highest("a", now.Add(time.Hour)); got != 0 {
		t.Errorf("a after an hour: %d", got)
	}
	for i := range 100 {
		a.Note(fmt.Sprint("b", i%4), int32(i+1), now.Add(time.Duration(i)))
		if a.Len() > 3 {
			t.Fatalf("%d remembered", a.Len())
		}
	}
	if a.Highest("b3", now) != 100 || a.Highest("b0", now) != 0 || a.Highest("b1", now) != 98 {
		t.Errorf("not the latest are kept: %d %d %d", a.Highest("b3", now), a.Highest("b0", now), a.Highest("b1", now))
	}
}
