package pyrunner

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Interpreter is a Python that was found.
type Interpreter struct {
	// Path is absolute: the interpreter itself, not a shim in front of it. A
	// virtual environment's python stays what it is.
	Path string
	// Version is "3.11.7".
	Version string
}

// probe prints what an interpreter is.
const probe = `import sys
print(sys.executable)
print("%d.%d.%d" % sys.version_info[:3])
print(sys.version_info >= (3, 9))`

// probeBound is how long an interpreter may take to say what it is.
const probeBound = 30 * time.Second

// wayOut ends what FindInterpreter says.
const wayOut = "install Python 3.9 or later, or name one that is there with --python"

// FindInterpreter resolves a name on PATH or a path, once: a shim can cost more
// than a hundred milliseconds at every start.
// Errors: it is not there, it does not run, it is older than 3.9.
func FindInterpreter(ctx context.Context, name string) (Interpreter, error) {
	ctx, cancel := context.WithTimeout(ctx, probeBound)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, "-I", "-c", probe)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return Interpreter{}, fmt.Errorf("find Python interpreter %q: %w%s; %s", name, err, stderrOf(err), wayOut)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 || lines[0] == "" {
		return Interpreter{}, fmt.Errorf("find Python interpreter %q: it answered %q; %s", name, out, wayOut)
	}
	found := Interpreter{Path: lines[0], Version: lines[1]}
	if lines[2] != "True" {
		return Interpreter{}, fmt.Errorf("interpreter %s is Python %s: 3.9 is the oldest that works; %s", found.Path, found.Version, wayOut)
	}
	return found, nil
}

func stderrOf(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return ": " + strings.TrimSpace(string(exit.Stderr))
	}
	return ""
}
