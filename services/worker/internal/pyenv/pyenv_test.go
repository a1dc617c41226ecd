package pyenv_test

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/services/worker/internal/pyenv"
)

func TestPrepare(t *testing.T) {
	folder := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	first, err := pyenv.Prepare(t.Context(), pyenv.Config{Folder: folder}, log)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(first.Python, "-I", "-c", "import cloudpickle").CombinedOutput(); err != nil {
		t.Errorf("the environment has no cloudpickle: %s", out)
	}
	if len(first.Binds) == 0 || first.Version == "" || first.Shared {
		t.Errorf("environment %+v", first)
	}
	before, err := os.Stat(filepath.Join(folder, "venv"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := pyenv.Prepare(t.Context(), pyenv.Config{Folder: folder}, log)
	if err != nil || second.Python != first.Python {
		t.Errorf("the second time: %+v %v", second, err)
	}
	if after, err := os.Stat(filepath.Join(folder, "venv")); err != nil || !os.SameFile(before, after) {
		t.Errorf("the environment was made twice (%v)", err)
	}
	named, err := pyenv.Prepare(t.Context(), pyenv.Config{Folder: t.TempDir(), Python: first.Python}, log)
	if err != nil || !named.Shared {
		t.Errorf("a named interpreter: %+v %v", named, err)
	}
}

// What cannot work says what to do.
func TestRefusals(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	if _, err := pyenv.Prepare(t.Context(), pyenv.Config{Folder: t.TempDir(), Python: "/nowhere/python3"}, log); err == nil || !strings.Contains(err.Error(), "name an interpreter") {
		t.Errorf("an interpreter that is not there: %v", err)
	}
	unreachable := pyenv.Config{Folder: t.TempDir(), InstallArgs: []string{"--no-index"}}
	if _, err := pyenv.Prepare(t.Context(), unreachable, log); err == nil || !strings.Contains(err.Error(), "name an interpreter that has cloudpickle") {
		// The base interpreter may have it: then nothing has to be fetched.
		if exec.Command("python3", "-I", "-c", "import cloudpickle").Run() != nil {
			t.Errorf("no index: %v", err)
		}
	}
}
