package runtimetest_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/adapters/runtimetest"
)

var update = flag.Bool("update", false, "write the lists of docs/conformance.md anew")

const document = "../../docs/conformance.md"

// The page lists what the code has.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for name, list := range map[string]string{
		"cases":      casesList(),
		"handlers":   behavioursList(runtimetest.Behaviours()),
		"invalid":    behavioursList(runtimetest.InvalidHandlers()),
		"executions": behavioursList(runtimetest.ExecutionBehaviours()),
	} {
		page = replace(t, page, name, list)
	}
	if page == string(data) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the code says: run go test ./runtimetest -run TestDocument -update", document)
	}
	if err := os.WriteFile(document, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace puts text between the marks of a list.
func replace(t *testing.T, page, name, text string) string {
	t.Helper()
	begin, end := fmt.Sprintf("<!-- %s -->\n", name), fmt.Sprintf("<!-- end of %s -->", name)
	head, rest, found := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no marks for %s", document, name)
	}
	return head + begin + text + end + tail
}

func casesList() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d cases.\n", len(runtimetest.Cases()))
	group := ""
	for _, c := range runtimetest.Cases() {
		if prefix := c.ID[:6]; prefix != group {
			group = prefix
			b.WriteString("\n| case | level | section | claim | needs |\n|---|---|---|---|---|\n")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.ID, c.Level, c.Clause, c.Claim, strings.Join(c.Needs, ", "))
	}
	return b.String() + "\n"
}

func behavioursList(list []runtimetest.Behaviour) string {
	var b strings.Builder
	b.WriteString("\n| name | what it does |\n|---|---|\n")
	for _, x := range list {
		fmt.Fprintf(&b, "| `%s` | %s |\n", x.Name, strings.ReplaceAll(x.Does, "|", "\\|"))
	}
	return b.String() + "\n"
}
