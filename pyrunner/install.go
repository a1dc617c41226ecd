package pyrunner

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

//go:embed python/hearth_pyrunner/*.py
var files embed.FS

const (
	packageName = "hearth_pyrunner"
	packageDir  = "python/" + packageName
)

// Package is the installed Python package.
type Package struct {
	// Dir is the folder that the package lies in.
	Dir string
}

// Install writes the Python package beneath dir, which it makes, and returns it.
// The folder is named for the content, so that versions never mix; what lies
// there is checked and put right. It may be called by many processes at once.
func Install(dir string) (Package, error) {
	entries, err := fs.ReadDir(files, packageDir)
	if err != nil {
		return Package{}, fmt.Errorf("read embedded package: %w", err)
	}
	contents := map[string][]byte{}
	sum := sha256.New()
	for _, e := range entries {
		data, err := files.ReadFile(path.Join(packageDir, e.Name()))
		if err != nil {
			return Package{}, fmt.Errorf("read embedded package: %w", err)
		}
		contents[e.Name()] = data
		fmt.Fprintf(sum, "%s %d\n%s", e.Name(), len(data), data)
	}
	p := Package{Dir: filepath.Join(dir, "pyrunner-"+hex.EncodeToString(sum.Sum(nil))[:16])}
	return p, p.write(contents)
}

func (p Package) write(contents map[string][]byte) error {
	dir := filepath.Join(p.Dir, packageName)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("install Python package: %w", err)
	}
	for name, data := range contents {
		if err := ensure(filepath.Join(dir, name), data); err != nil {
			return fmt.Errorf("install Python package: %w", err)
		}
	}
	return nil
}

// ensure makes the file hold data, by a rename if it does not.
func ensure(name string, data []byte) error {
	if have, err := os.ReadFile(name); err == nil && bytes.Equal(have, data) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// entry starts the package from the folder in argv[1]; the rest of argv is the
// entry's name and its arguments.
const entry = `import sys; sys.path.insert(0, sys.argv[1]); from ` + packageName + `.main import main; main(*sys.argv[1:])`

// Command starts an entry of the package ("template", or a mode's own) with an
// interpreter. The interpreter takes no notice of PYTHON* variables, of the
// user's site-packages and of the present folder; a virtual environment's
// packages stay. Its environment is the caller's to set: an empty one otherwise.
func (p Package) Command(interpreter, name string, args ...string) *exec.Cmd {
	argv := append([]string{"-I", "-X", "utf8", "-c", entry, p.Dir, name}, args...)
	cmd := exec.Command(interpreter, argv...)
	cmd.Env = []string{}
	return cmd
}
