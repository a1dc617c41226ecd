package bash

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// The seeds run in ordinary tests. For longer:
// go test ./bash -run - -fuzz FuzzHandler -fuzztime 20s
func FuzzHandler(f *testing.F) {
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "app.sh"), nil, 0o644); err != nil {
		f.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out.sh")); err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"app.handle", "app", ".", "..", "app.", ".handle", "../app.x", "/app.x", "out.x", "app.a b", "app.$(x)", "app.x;y", "app.\n", "app.é", "a\x00pp.x", "./app.x", "x/../app.x", "app.-x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, handler string) {
		file, function, err := split(dir, handler)
		if err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Errorf("the error is no UTF-8: %q", err)
			}
			return
		}
		if file != filepath.Join(dir, "app.sh") || function == "" || strings.ContainsAny(function, " \t\n;$`\"'\\(){}<>|&*?[]~#!") {
			t.Errorf("%q became %q %q", handler, file, function)
		}
	})
}
