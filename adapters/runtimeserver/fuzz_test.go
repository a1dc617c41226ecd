package runtimeserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// The fuzz targets run their seeds in ordinary tests. For longer:
// go test ./runtimeserver -run - -fuzz FuzzWorkingDir -fuzztime 20s

func FuzzWorkingDir(f *testing.F) {
	root, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	workspace := filepath.Join(root, "workspace")
	if err := os.MkdirAll(filepath.Join(workspace, "run", "deep"), 0o755); err != nil {
		f.Fatal(err)
	}
	for name, target := range map[string]string{"out": root, "up": "..", "loop": "loop", "in": "run"} {
		if err := os.Symlink(target, filepath.Join(workspace, name)); err != nil {
			f.Fatal(err)
		}
	}
	for _, seed := range []string{"", "/", "/run", "/run/deep", "/run/..", "/run/../..", "/out", "/up", "/loop", "/in/deep", "/.hearth", "/run\x00", "//run", "/./run/.", "/run/" + strings.Repeat("x", 300)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, err := resolveDir(workspace, workspace+path)
		if err == nil && (got != filepath.Join(workspace, "run") && got != filepath.Join(workspace, "run", "deep")) {
			t.Errorf("%q became %q", path, got)
		}
		if err != nil && !utf8.ValidString(err.Error()) {
			t.Errorf("the error is no UTF-8: %q", err)
		}
	})
}

func FuzzEnv(f *testing.F) {
	for _, seed := range [][2]string{{"A", "1"}, {"", ""}, {"HEARTH_X", "1"}, {"A=B", "1"}, {"A", "\x00"}, {"A\x00", ""}, {"PATH", "/x"}, {"É", "é"}, {"A", strings.Repeat("x", 200<<10)}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		given := map[string]string{name: value}
		if err := checkEnv(given); err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Errorf("the error is no UTF-8: %q", err)
			}
			return
		}
		env := Default("/w").environ("/tmp", given, map[string]string{"HEARTH_RUN_UID": "r"})
		found := false
		for _, entry := range env {
			if strings.ContainsRune(entry, 0) {
				t.Errorf("NUL in %q", entry)
			}
			found = found || entry == name+"="+value
		}
		if !found {
			t.Errorf("%q=%q is not in %q", name, value, env)
		}
	})
}

func FuzzOutputs(f *testing.F) {
	for _, seed := range []string{"", "a=1\n", "a=1", "=x\n", "a\n", "a=1\r\nb=2\r\n", "a==\n", "\n\n", "\x00=\x00\n", "a=\xff\n", strings.Repeat("k=v\n", 100), "k=" + strings.Repeat("x", 9000)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		outputs, err := ParseOutputs(file)
		if err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Errorf("the error is no UTF-8: %q", err)
			}
			return
		}
		if err := CheckOutputs(outputs); err != nil {
			t.Errorf("accepted and out of bounds: %v", err)
		}
		for key, value := range outputs {
			if !strings.Contains(string(file), key+"="+value) {
				t.Errorf("%q=%q is not in the file", key, value)
			}
		}
	})
}
