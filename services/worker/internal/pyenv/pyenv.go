// Package pyenv owns the Python environment of a worker's executors: a virtual
// environment with cloudpickle in the data folder, made at the first start, or an
// interpreter that was named and has it.
package pyenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Cloudpickle is the requirement that the environment is made with.
const Cloudpickle = "cloudpickle==3.1.2"

// Config says which environment to use.
type Config struct {
	// Folder is where the virtual environment is kept.
	Folder string
	// Python names an interpreter that has cloudpickle; empty: one is made from
	// python3 on PATH.
	Python string
	// InstallArgs are added to pip's command line, say an index of your own.
	InstallArgs []string
	// Packages are requirements that the made environment has beside cloudpickle; an
	// environment that was made with others is made anew.
	Packages []string
}

// Environment is an interpreter that can run executors.
type Environment struct {
	// Python is the interpreter's path; Version its "3.11".
	Python, Version string
	// Binds are the folders that it reads: prefixes, standard library, site
	// packages; absolute, without duplicates.
	Binds []string
	// Shared says that Python was named, not made here.
	Shared bool
}

// Prepare returns the environment, making it where it is not there yet. Two
// workers on one folder wait for each other.
// Errors say what to do about them.
func Prepare(ctx context.Context, cfg Config, log *slog.Logger) (Environment, error) {
	if cfg.Python != "" {
		env, err := inspect(ctx, cfg.Python)
		if err != nil {
			return Environment{}, fmt.Errorf("%w; name an interpreter that can import cloudpickle, or none", err)
		}
		env.Shared = true
		return env, nil
	}
	if err := os.MkdirAll(cfg.Folder, 0o755); err != nil {
		return Environment{}, err
	}
	unlock, err := lock(filepath.Join(cfg.Folder, "lock"))
	if err != nil {
		return Environment{}, err
	}
	defer unlock()
	venv := filepath.Join(cfg.Folder, "venv")
	if made, err := os.ReadFile(filepath.Join(venv, contents)); err == nil && string(made) == cfg.contents() {
		if env, err := inspect(ctx, filepath.Join(venv, "bin", "python")); err == nil {
			return env, nil
		}
	}
	if err := build(ctx, cfg, venv, log); err != nil {
		return Environment{}, err
	}
	return inspect(ctx, filepath.Join(venv, "bin", "python"))
}

// contents is a file in the environment that says what it was made with.
const contents = "hearth-contents"

func (c Config) contents() string {
	return strings.Join(append([]string{Cloudpickle}, c.Packages...), "\n") + "\n"
}

func build(ctx context.Context, cfg Config, venv string, log *slog.Logger) error {
	start := time.Now()
	log.Info("making the executors' Python environment, once", "folder", venv, "requirements", append([]string{Cloudpickle}, cfg.Packages...))
	base, err := exec.LookPath("python3")
	if err != nil {
		return errors.New("no python3 on PATH: install Python 3.9 or later, or name an interpreter that has cloudpickle")
	}
	temporary := venv + ".new"
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	python := filepath.Join(temporary, "bin", "python")
	if err := run(ctx, base, "-m", "venv", "--without-pip", "--system-site-packages", temporary); err != nil {
		return fmt.Errorf("make a virtual environment: %w; on Debian install python3-venv, or name an interpreter that has cloudpickle", err)
	}
	// The base interpreter's pip serves; to unpack another takes seconds.
	if run(ctx, python, "-m", "pip", "--version") != nil {
		if err := run(ctx, python, "-m", "ensurepip"); err != nil {
			return fmt.Errorf("find pip: %w; on Debian install python3-pip or python3-venv, or name an interpreter that has cloudpickle", err)
		}
	}
	install := append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:"}, cfg.InstallArgs...)
	install = append(append(install, Cloudpickle), cfg.Packages...)
	if err := run(ctx, python, install...); err != nil {
		return fmt.Errorf("install %s: %w; with no package index in reach, name an interpreter that has cloudpickle", strings.Join(append([]string{Cloudpickle}, cfg.Packages...), ", "), err)
	}
	if err := os.WriteFile(filepath.Join(temporary, contents), []byte(cfg.contents()), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(venv); err != nil {
		return err
	}
	if err := os.Rename(temporary, venv); err != nil {
		return err
	}
	log.Info("the executors' Python environment is made", "took", time.Since(start))
	return nil
}

func run(ctx context.Context, program string, args ...string) error {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(string(out))
	return fmt.Errorf("%w: %s", err, text[max(0, len(text)-2048):])
}

// question asks an interpreter what it is and what it reads.
const question = `
import cloudpickle, json, os, site, sys, sysconfig
paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
paths += [p for p in sys.path if p and os.path.isdir(p)]
paths += [os.path.dirname(os.path.realpath(sys.executable)), os.path.dirname(cloudpickle.__file__)]
print(json.dumps({"python": sys.executable, "version": "%d.%d" % sys.version_info[:2], "paths": paths}))
`

func inspect(ctx context.Context, python string) (Environment, error) {
	cmd := exec.CommandContext(ctx, python, "-I", "-c", question)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return Environment{}, fmt.Errorf("ask %s for cloudpickle: %w", python, err)
	}
	var answer struct {
		Python, Version string
		Paths           []string
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return Environment{}, fmt.Errorf("ask %s: %w", python, err)
	}
	env := Environment{Python: answer.Python, Version: answer.Version, Binds: roots(answer.Paths)}
	return env, readable(env.Binds)
}

// readable refuses folders that a user without rights, as executors are, could not
// read. What lies above them is made anew in every container.
func readable(folders []string) error {
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o005 != 0o005 {
			return fmt.Errorf("folder %s of the interpreter is closed to other users (mode %v), and executors run as one: chmod o+rx %s", folder, info.Mode().Perm(), folder)
		}
	}
	return nil
}

// roots drops paths that lie beneath another one.
func roots(paths []string) []string {
	var out []string
	for _, path := range paths {
		path = filepath.Clean(path)
		covered := false
		for _, other := range paths {
			other = filepath.Clean(other)
			covered = covered || (other != path && strings.HasPrefix(path, other+"/"))
		}
		if !covered && path != "/" && !contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

func contains(list []string, path string) bool {
	for _, p := range list {
		if p == path {
			return true
		}
	}
	return false
}

// lock takes the folder's lock, waiting for whoever has it.
func lock(path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}
