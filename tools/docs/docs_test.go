package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/tools/docs"
)

const root = "../.."

// What the pages name is there: files, folders, examples and pages.
func TestPages(t *testing.T) {
	pages, err := docs.Pages(root)
	if err != nil || len(pages) < 4 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		missing, err := docs.Missing(root, page, string(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range missing {
			t.Errorf("%s names %s, which is not there", page, name)
		}
	}
}

// Every example has its row in the examples' page, and every row its folder.
func TestExamples(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "examples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var there, told []string
	for _, language := range []string{"python", "bash"} {
		found, err := filepath.Glob(filepath.Join(root, "examples", language, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range found {
			there = append(there, language+"/"+filepath.Base(folder))
		}
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) > 2 && strings.Contains(cells[1], "/") {
			told = append(told, strings.Trim(cells[1], " `"))
		}
	}
	slices.Sort(there)
	slices.Sort(told)
	if !slices.Equal(there, told) {
		t.Errorf("examples are %v, their page tells of %v", there, told)
	}
}

func TestMissing(t *testing.T) {
	for text, want := range map[string]string{
		"see `docs/errors.md`, examples/python/hello.":      "",
		"`go run ./hearth/nowhere`":                         "hearth/nowhere",
		"--source examples/python/absent --wait":            "examples/python/absent",
		"(tools/law/absent.go)":                             "tools/law/absent.go",
		"[errors](errors.md#codes) [web](https://a.b/c.md)": "",
		"[absent](absent.md)":                               "docs/absent.md",
		"http://127.0.0.1/docs/absent, bin/absent, a/b":     "",
	} {
		got, err := docs.Missing(root, "docs/functions.md", text)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: missing %v, %v; want %q", text, got, err, want)
		}
	}
}
