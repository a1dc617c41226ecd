package cli

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write the tables of docs/operations.md anew")

const operations = "../../../docs/operations.md"

// documented are the commands whose settings are in the page, by their words.
var documented = []string{"up", "controlplane", "runtimed", "gateway", "router", "worker serve"}

// The tables of settings are those of the flags, which are the fields of the
// services' own Config structs.
func TestSettings(t *testing.T) {
	parser, err := newParser(new(grammar), Shell{})
	if err != nil {
		t.Fatal(err)
	}
	var tables strings.Builder
	for _, words := range documented {
		node := find(parser.Model.Node, strings.Fields(words))
		if node == nil {
			t.Fatalf("there is no command %q", words)
		}
		fmt.Fprintf(&tables, "### hearth %s\n\n%s\n", words, settings(node))
	}
	page, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(page), "### hearth ")
	want := head + strings.TrimRight(tables.String(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(operations, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Error("docs/operations.md has other settings than the code: run go test ./internal/cli -run Settings -update")
	}
}

func find(node *kong.Node, words []string) *kong.Node {
	for _, word := range words {
		var next *kong.Node
		for _, child := range node.Children {
			if child.Name == word {
				next = child
			}
		}
		if next == nil {
			return nil
		}
		node = next
	}
	return node
}

func settings(node *kong.Node) string {
	var b strings.Builder
	b.WriteString("| flag | variable | default | meaning |\n|---|---|---|---|\n")
	for _, f := range node.Flags {
		value := f.Default
		switch {
		case f.Required:
			value = "(required)"
		case f.Name == "data" && value != "" && node.Name == "up":
			value = "~/.local/share/hearth" // made from the user's home
		}
		if value != "" && value[0] != '(' {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `--%s` | %s | %s | %s |\n", f.Name, strings.Join(f.Envs, " "), value, strings.ReplaceAll(f.Help, "|", `\|`))
	}
	return b.String()
}

var execStart = regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/hearth-(\S+) (.*)$`)

// The flags of the units are flags that there are.
func TestUnits(t *testing.T) {
	page, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	parser, err := newParser(new(grammar), Shell{})
	if err != nil {
		t.Fatal(err)
	}
	units := execStart.FindAllStringSubmatch(string(page), -1)
	for _, unit := range units {
		words := []string{unit[1]}
		switch {
		case strings.HasPrefix(unit[1], "runtime-"):
			continue // a Runtime Server is no command of this one
		case unit[1] == "worker":
			words = append(words, "serve")
		}
		if _, err := parser.Parse(append(words, strings.Fields(unit[2])...)); err != nil {
			t.Errorf("the unit of %s: %v", unit[1], err)
		}
	}
	if n := strings.Count(string(page), "Delegate=yes\nKillMode=mixed\n"); len(units) != 6 || n != len(units) {
		t.Errorf("%d units, %d of them delegate", len(units), n)
	}
}
