package zygote_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hearth-run/hearth/pyrunner"
	"github.com/hearth-run/hearth/services/worker/internal/pyenv"
)

// pythonEnv names an interpreter with cloudpickle for these tests, and with numpy and
// pandas for the benchmarks; without it an environment is made as a worker makes it.
const pythonEnv = "HEARTH_TEST_PYTHON"

// numpy is in the environment that is made; its version is for Python 3.11 and later.
const numpy = "numpy==2.3.3; python_version >= '3.11'"

// site is an environment above another one: what the other has, and the modules that
// tests write.
type site struct {
	pyenv.Environment
	modules string
	runner  pyrunner.Package
}

var (
	folder      string // of the tests' environments
	environment = sync.OnceValues(makeSite)
)

func makeSite() (site, error) {
	var s site
	base, err := pyenv.Prepare(context.Background(), pyenv.Config{Folder: folder, Python: os.Getenv(pythonEnv), Packages: []string{numpy}}, slog.New(slog.DiscardHandler))
	if err != nil {
		return s, err
	}
	const ask = "import json, sys, sysconfig; print(json.dumps([sys._base_executable, sysconfig.get_path('purelib')]))"
	out, err := exec.Command(base.Python, "-I", "-c", ask).Output()
	if err != nil {
		return s, err
	}
	var told []string
	if err := json.Unmarshal(out, &told); err != nil {
		return s, err
	}
	top := filepath.Join(folder, "above")
	s.modules = filepath.Join(top, "lib", "python"+base.Version, "site-packages")
	python := filepath.Join(top, "bin", "python")
	err = errors.Join(os.MkdirAll(s.modules, 0o755), os.MkdirAll(filepath.Dir(python), 0o755),
		os.WriteFile(filepath.Join(top, "pyvenv.cfg"), []byte("home = "+filepath.Dir(told[0])+"\n"), 0o644),
		os.WriteFile(filepath.Join(s.modules, "base.pth"), []byte(told[1]+"\n"), 0o644),
		os.Symlink(told[0], python))
	if err != nil {
		return s, err
	}
	if s.runner, err = pyrunner.Install(folder); err != nil {
		return s, err
	}
	s.Environment, err = pyenv.Prepare(context.Background(), pyenv.Config{Python: python}, slog.New(slog.DiscardHandler))
	s.Binds = append(s.Binds, base.Binds...)
	return s, err
}

func mustSite(t testing.TB) site {
	t.Helper()
	s, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write makes a module of the environment, until the test ends.
func (s site) write(t testing.TB, name, source string) {
	t.Helper()
	file := filepath.Join(s.modules, name+".py")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file) })
}
