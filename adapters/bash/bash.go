// Package bash runs functions written in Bash: a file is sourced once, and each
// call is a subshell forked from that warm bash, ahead of it but for the first.
//
// A handler is FILE.FUNCTION: the function FUNCTION of FILE.sh beneath the
// working directory. It is called with the payload as its one argument; what it
// writes to stdout is the response, byte for byte, what it writes to stderr goes
// to the log. $HEARTH_OUTPUTS names a file for KEY=VALUE lines.
//
// What a function's author has to know:
//   - The file is sourced once; what it sets is there in every call. What a call
//     sets, its directory, options and traps included, is gone after it.
//   - A status other than 0 is HANDLER_ERROR, with the status in its metadata and
//     the end of stderr in its details. $BASHPID is the call's own shell; $$ is the
//     one that all calls are forked from, and ending that costs a new load.
//   - Processes that a call leaves running are killed before it is answered, those
//     of the sourcing before the function is READY.
//   - A payload has at most 1 MiB and no NUL, an output at most 1 MiB of any bytes.
//   - The file must source with status 0. Syntax errors and CR LF line ends are
//     told with file and line by FunctionStatus' fatal_error.
package bash

import (
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// Config says which bash to run.
type Config struct {
	// Bash is the program, by path or looked up in PATH; "bash" when empty. Version
	// 5.0 or later.
	Bash string `help:"The bash that runs functions, by path or name; 5.0 or later." default:"bash"`
}

// Language is the driver. Safe for concurrent use.
type Language struct {
	bash    string
	buffers sync.Pool // of captures
}

//go:embed driver.sh
var driver string

// New finds the program.
func New(cfg Config) (*Language, error) {
	name := cfg.Bash
	if name == "" {
		name = "bash"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("find bash: %w: install bash 5.0 or later; hearth-runtime-bash takes another with --bash, and hearth up does without with --runtimes python", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	version, err := exec.Command(path, "--norc", "--noprofile", "-c", `echo "${BASH_VERSINFO[0]}"`).Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	if major := strings.TrimSpace(string(version)); len(major) == 1 && major < "5" || major == "" {
		return nil, fmt.Errorf("%s is bash %s: version 5.0 or later is needed", path, major)
	}
	return &Language{bash: path, buffers: sync.Pool{New: newBuffer}}, nil
}

// Name is "bash".
func (l *Language) Name() string { return "bash" }

var (
	functionPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_:-]*$`)
	filePattern     = regexp.MustCompile(`^[^\x00-\x1f\x7f]+$`)
)

// Resolve checks the form of a handler and that its file is there.
func (l *Language) Resolve(dir, handler string) error {
	_, _, err := split(dir, handler)
	return err
}

// split returns the file and the function that a handler names.
func split(dir, handler string) (file, function string, err error) {
	dot := strings.LastIndexByte(handler, '.')
	if dot < 1 || dot == len(handler)-1 {
		return "", "", edge.Publicf(runtimeserver.ErrHandlerInvalid, "handler %q is not FILE.FUNCTION, such as app.hello for the function hello of app.sh", handler)
	}
	name, function := handler[:dot], handler[dot+1:]
	if !functionPattern.MatchString(function) {
		return "", "", edge.Publicf(runtimeserver.ErrHandlerInvalid, "handler %q: a function's name is [A-Za-z_][A-Za-z0-9_:-]*", handler)
	}
	if !filePattern.MatchString(name) || !filepath.IsLocal(name) {
		return "", "", edge.Publicf(runtimeserver.ErrHandlerInvalid, "handler %q: the file must lie beneath working_dir", handler)
	}
	file, err = runtimeserver.FileBeneath(dir, name+".sh")
	return file, function, err
}

// Load starts a warm bash and sources the file in it.
func (l *Language) Load(ctx context.Context, f runtimeserver.Function) (runtimeserver.Instance, error) {
	file, function, err := split(f.Dir, f.Handler)
	if err != nil {
		return nil, err
	}
	i := &instance{bash: l.bash, file: file, function: function, f: f, buffers: &l.buffers}
	if err := i.open(ctx); err != nil {
		return nil, err
	}
	return i, nil
}
