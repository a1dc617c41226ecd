package container_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/services/worker/internal/container"
)

// A script is one story: lines of "event [argument] -> Phase: effects" or
// "event [argument] -> refused". "new SESSION" begins it.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txt"), func(t *testing.T) { play(t, script) })
	}
}

func play(t *testing.T, script string) {
	t.Helper()
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	var state container.State
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		told, want, ok := strings.Cut(line, " -> ")
		words := strings.Fields(told)
		if words[0] == "new" {
			state = container.New(strings.Join(words[1:], ""))
			continue
		}
		if !ok {
			t.Fatalf("line %d: no arrow: %s", i+1, line)
		}
		event := container.Event{Kind: container.Kind(words[0])}
		if len(words) > 1 {
			event.Session, event.Success = words[1], words[1] == "ok"
		}
		next, effects, err := container.Step(state, event)
		got := "refused"
		if err == nil {
			got = strings.TrimSuffix(fmt.Sprintf("%s: %s", next.Phase, strings.Trim(fmt.Sprint(effects), "[]")), ": ")
		} else if next != state {
			t.Errorf("line %d: a refusal changed the state", i+1)
		}
		if got != want {
			t.Errorf("line %d: %s -> %s, want %s", i+1, told, got, want)
		}
		state = next
	}
}
