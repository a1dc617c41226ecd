package pyrunner_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/pyrunner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var interpreter = sync.OnceValues(func() (pyrunner.Interpreter, error) {
	return pyrunner.FindInterpreter(context.Background(), "python3")
})

func python(t testing.TB) string {
	t.Helper()
	found, err := interpreter()
	if err != nil {
		t.Fatal(err)
	}
	return found.Path
}

func TestInterpreterIsAbsoluteAndNoShim(t *testing.T) {
	path := python(t)
	again, err := pyrunner.FindInterpreter(t.Context(), path)
	if err != nil || again.Path != path || !filepath.IsAbs(path) || !strings.HasPrefix(again.Version, "3.") {
		t.Errorf("%s leads to %+v, %v", path, again, err)
	}
}

func TestVirtualEnvironmentStaysWhatItIs(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"pyvenv.cfg": "home = " + filepath.Dir(python(t)) + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "bin", "python")
	if err := errors.Join(os.Mkdir(filepath.Dir(bin), 0o755), os.Symlink(python(t), bin)); err != nil {
		t.Fatal(err)
	}
	if found, err := pyrunner.FindInterpreter(t.Context(), bin); err != nil || found.Path != bin {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestInterpretersThatAreNone(t *testing.T) {
	script := func(body string) string {
		name := filepath.Join(t.TempDir(), "python")
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for name, want := range map[string]string{
		"no-such-python": "not found",
		script("echo 'out of order' >&2; exit 3"):              "exit status 3: out of order",
		script("echo Python"):                                  "it answered",
		script("echo /usr/bin/old; echo 3.8.1; echo False"):    "/usr/bin/old is Python 3.8.1: 3.9 is the oldest that works",
		filepath.Join(t.TempDir(), "absent", "bin", "python3"): "no such file",
	} {
		if _, err := pyrunner.FindInterpreter(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--python") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInstallPutsRightWhatLiesThere(t *testing.T) {
	dir := t.TempDir()
	first, err := pyrunner.Install(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(first.Dir, "hearth_pyrunner", "main.py")
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("raise SystemExit"), 0o644); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if again, err := pyrunner.Install(dir); err != nil || again != first {
				t.Errorf("%v, %v", again, err)
			}
		})
	}
	group.Wait()
	if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
		t.Errorf("%s stayed as it was: %v", file, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".new-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestPythonUnits runs the Python side's own tests.
func TestPythonUnits(t *testing.T) {
	cmd := pyrunner.Package{Dir: "python"}.Command(python(t), "")
	cmd.Args = []string{cmd.Path, "-I", "-X", "dev", "-W", "error", "-W", "ignore::ResourceWarning", "-B", "-c",
		"import sys, unittest; sys.path[:0] = ['python']; unittest.main(None, argv=['unittest', 'discover', '-s', 'python/tests', '-t', 'python/tests'])"}
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\nOK") || strings.Contains(string(out), "Ran 0 tests") {
		t.Errorf("%v\n%s", err, out)
	}
}
