package nodes

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the machine does into the scripts; read the diff before you believe it")

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Each line reads "TIME EVENT => PHASE until=TIME | effects"; an empty line begins
// with a node that nobody knows. Lease 10 s, margin 2 s, lost nodes kept for 1 h.
func TestScripts(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("no scripts")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		var s State
		for i, line := range lines {
			if line == "" {
				s = State{}
			}
			if line == "" || line[0] == '#' {
				continue
			}
			said, want, _ := strings.Cut(line, "=>")
			got := tell(t, &s, strings.Fields(said))
			if got != strings.TrimSpace(want) && !*update {
				t.Errorf("%s:%d: %s\n got %s\nwant %s", file, i+1, said, got, want)
			}
			lines[i] = fmt.Sprintf("%-16s => %s", strings.TrimSpace(said), got)
		}
		if *update {
			if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func tell(t *testing.T, s *State, words []string) string {
	after, err := time.ParseDuration(words[0])
	if err != nil {
		t.Fatal(err)
	}
	terms := Terms{Lease: 10 * time.Second, Margin: 2 * time.Second, Keep: time.Hour}
	next, effects, err := Apply(terms, *s, Kind(words[1]), epoch.Add(after))
	switch {
	case errors.Is(err, ErrFenced):
		return "fenced"
	case errors.Is(err, ErrRefused):
		return "refused"
	}
	*s = next
	out := string(next.Phase)
	if at, ok := Due(terms, next); ok {
		out += " due=" + at.Sub(epoch).String()
	}
	for _, e := range effects {
		out += " | " + string(e)
	}
	return out
}
