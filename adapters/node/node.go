// Package node runs functions written in JavaScript: the third language, small on
// purpose, that shows what the kernel asks of one.
//
// A handler is FILE.FUNCTION: a function that FILE.js beneath the working
// directory exports, called as f(event, context) with the decoded payload and
// {runUid, invocationId, outputs, remainingTimeMs}. It may be async; what it
// returns is the answer, as JSON. A process that was killed is followed by a
// fresh load, which the next call pays for.
package node

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/hearth-run/hearth/adapters/internal/interpreter"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

//go:embed driver.js
var driver string

// Language is the driver. Safe for concurrent use.
type Language struct{ program string }

// New finds the program: a path, or a name on PATH; "node" when empty.
func New(program string) (*Language, error) {
	if program == "" {
		program = "node"
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("find Node.js: %w: install version 18 or later, or name its program", err)
	}
	path, err = filepath.Abs(path)
	return &Language{program: path}, err
}

// Name is "node".
func (*Language) Name() string { return "node" }

// Resolve checks the form of a handler and that its file is there.
func (*Language) Resolve(dir, handler string) error {
	_, _, err := split(dir, handler)
	return err
}

func split(dir, handler string) (file, function string, err error) {
	name, function, ok := strings.Cut(handler, ".")
	if !ok || name == "" || function == "" || !filepath.IsLocal(name) {
		return "", "", edge.Publicf(runtimeserver.ErrHandlerInvalid, "handler %q is not FILE.FUNCTION, such as app.hello for the export hello of app.js in working_dir", handler)
	}
	file, err = runtimeserver.FileBeneath(dir, name+".js")
	return file, function, err
}

// Command runs `node entrypoint args…`, or `node args…`.
func (l *Language) Command(_, entrypoint string, args []string) ([]string, error) {
	argv := []string{l.program}
	if entrypoint != "" {
		argv = append(argv, entrypoint)
	}
	return append(argv, args...), nil
}

// Load starts a process and imports the file in it.
func (l *Language) Load(ctx context.Context, f runtimeserver.Function) (runtimeserver.Instance, error) {
	file, function, err := split(f.Dir, f.Handler)
	if err != nil {
		return nil, err
	}
	return interpreter.Load(ctx, f, []string{l.program, "-e", driver, file, function})
}
