package lifecycle

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the machine does into the scripts; read the diff before you believe it")

// A script is a story. "policy: key=value …" opens one; each line after it is
//
//	TIME EVENT key=value … => STAGE facts | effects
//
// TIME is counted from the creation. A refusal reads "=> fenced" or "=> refused".
func TestScripts(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("no scripts")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			var story *story
			for i, line := range lines {
				switch {
				case line == "" || strings.HasPrefix(line, "#"):
				case strings.HasPrefix(line, "policy:"):
					story = open(t, strings.TrimPrefix(line, "policy:"))
				default:
					said, want, _ := strings.Cut(line, "=>")
					got := story.tell(t, strings.TrimSpace(said))
					if got != strings.TrimSpace(want) && !*update {
						t.Errorf("%s:%d: %s\n got %s\nwant %s", file, i+1, strings.TrimSpace(said), got, strings.TrimSpace(want))
					}
					lines[i] = fmt.Sprintf("%-44s => %s", strings.TrimSpace(said), got)
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

type story struct {
	p Policy
	s State
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func open(t *testing.T, words string) *story {
	s := &story{s: New(epoch)}
	for _, word := range strings.Fields(words) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "task":
			s.p.Task = true
		case "attempts":
			s.p.MaxAttempts = number(t, value)
		case "timeout":
			s.p.Timeout = span(t, value)
		case "ttl":
			ttl := span(t, value)
			s.p.TTL = &ttl
		case "backoff":
			from, to, _ := strings.Cut(value, "..")
			s.p.InitialBackoff, s.p.MaxBackoff = span(t, from), span(t, to)
		case "retry":
			for _, name := range strings.Split(value, ",") {
				s.p.Retryable = append(s.p.Retryable, reason(t, name))
			}
		default:
			t.Fatalf("policy word %q", word)
		}
	}
	return s
}

func (s *story) tell(t *testing.T, said string) string {
	words := strings.Fields(said)
	now := epoch.Add(span(t, words[0]))
	e := Event{Kind: Kind(words[1])}
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "n":
			e.Attempt = number(t, value)
		case "node":
			e.Node, e.Endpoint = value, "http://"+value
		case "why":
			e.Reason = reason(t, value)
		case "text":
			e.Message = value
		case "exit":
			e.ExitCode = number(t, value)
		case "jitter":
			e.Jitter, _ = strconv.ParseFloat(value, 64)
		default:
			t.Fatalf("event word %q", word)
		}
	}
	if e.Kind == "Due" {
		kind, at, ok := Due(s.p, s.s)
		if !ok {
			return "nothing"
		}
		return fmt.Sprintf("%s at %s", kind, at.Sub(epoch))
	}
	before := s.s
	after, err := Apply(s.p, s.s, e, now)
	switch {
	case errors.Is(err, ErrFenced):
		return "fenced"
	case errors.Is(err, ErrRefused):
		return "refused"
	}
	s.s = after
	return show(after) + effects(before, after)
}

func show(s State) string {
	out := string(s.Stage)
	if s.Stage == Ended || s.Stage == Removed {
		out += " " + map[Phase]string{Succeeded: "SUCCEEDED", Failed: "FAILED", TimedOut: "TIMEOUT", Cancelled: "CANCELLED"}[s.Outcome]
	}
	out += " " + s.Reason.String()
	if s.Holds() {
		out += fmt.Sprintf(" %d@%s", s.Attempt, s.Node)
	}
	if !s.RetryAt.IsZero() {
		out += " retry=" + s.RetryAt.Sub(epoch).String()
	}
	if s.ExitCode != nil {
		out += fmt.Sprintf(" exit=%d", *s.ExitCode)
	}
	return out
}

func effects(before, after State) string {
	var words []string
	for _, e := range Effects(before, after) {
		words = append(words, strings.TrimSpace(string(e.Op)+" "+e.Node))
	}
	if len(words) == 0 {
		return ""
	}
	return " | " + strings.Join(words, ", ")
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func span(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func reason(t *testing.T, name string) Reason {
	for r, m := range meanings {
		if m.name == name {
			return r
		}
	}
	t.Fatalf("reason %q", name)
	return 0
}
