package manual

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the folder of the workspace.
const root = "../../.."

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sources passes the text of each Go file beneath a folder of the workspace.
func sources(t *testing.T, folder string, tests bool, each func(text string)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") != tests {
			return err
		}
		text, err := os.ReadFile(path)
		each(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	named   = regexp.MustCompile(`([a-z]+/[a-z/]+): (Test\w+)`)
	defined = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// Every test that the page of promises names is there.
func TestPromisesHaveTests(t *testing.T) {
	have := map[string][]string{}
	promised := named.FindAllStringSubmatch(page(t, "reliability.md"), -1)
	for _, m := range promised {
		folder, name := m[1], m[2]
		if have[folder] == nil {
			have[folder] = []string{}
			sources(t, folder, true, func(text string) {
				for _, d := range defined.FindAllStringSubmatch(text, -1) {
					have[folder] = append(have[folder], d[1])
				}
			})
		}
		if !slices.Contains(have[folder], name) {
			t.Errorf("docs/reliability.md names %s: %s, which is not there", folder, name)
		}
	}
	if len(promised) < 50 {
		t.Errorf("only %d tests are named: the pattern sees too few", len(promised))
	}
}

var (
	parts = regexp.MustCompile(`\b[A-Z][a-z]+[A-Za-z]*\b`)
	cases = regexp.MustCompile(`(?m)^func (Test\w+)\(|^\s*(?:tests\[)?"([A-Z]\w+)"(?:\] =|:)`)
)

// Every test that the page of walls names is there.
func TestWallsHaveTests(t *testing.T) {
	have := map[string]bool{}
	for _, folder := range []string{"sandbox", "services/worker", "pyrunner"} {
		sources(t, folder, true, func(text string) { note(have, text) })
		sources(t, folder, false, func(text string) { note(have, text) })
	}
	seen := 0
	for line := range strings.Lines(page(t, "security.md")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 || strings.Contains(line, "---") || strings.Contains(line, "| tests |") {
			continue
		}
		tests := cells[2]
		if len(cells) > 4 {
			tests = cells[3]
		}
		for _, name := range parts.FindAllString(tests, -1) {
			if seen++; !have[name] {
				t.Errorf("docs/security.md names %s, which is not there", name)
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d tests are named: the pattern sees too few", seen)
	}
}

func note(have map[string]bool, text string) {
	for _, m := range cases.FindAllStringSubmatch(text, -1) {
		have[m[1]+m[2]] = true
	}
}

var (
	given  = regexp.MustCompile(`Reason: "([A-Z_]+)"|edge\.New\(connect\.Code\w+, "([A-Z_]+)"`)
	listed = regexp.MustCompile(`\b[A-Z]{2,}(?:_[A-Z]+)*\b`)
)

// Every reason that the code can give is on the page of errors.
func TestReasonsAreListed(t *testing.T) {
	words := listed.FindAllString(page(t, "errors.md"), -1)
	seen := 0
	for _, folder := range []string{"services", "adapters", "internal/kit"} {
		sources(t, folder, false, func(text string) {
			for _, m := range given.FindAllStringSubmatch(text, -1) {
				seen++
				if reason := m[1] + m[2]; !slices.Contains(words, reason) {
					t.Errorf("docs/errors.md does not have %s", reason)
				}
			}
		})
	}
	if seen < 50 {
		t.Errorf("only %d reasons in the code: the pattern sees too few", seen)
	}
}
