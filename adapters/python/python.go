package python

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/pyrunner"
)

// Config says which Python runs functions.
type Config struct {
	// Interpreter is a name on PATH or a path: python3, or bin/python of a virtual
	// environment, whose packages functions can then import.
	Interpreter string `name:"python" help:"Interpreter that runs functions: a name on PATH or a path, of a virtual environment too." default:"python3"`
	// Cache is a folder for the server's own Python code, made if it is missing;
	// empty: in the user's cache folder.
	Cache string `name:"python-cache" help:"Folder for the server's own Python code; empty: in the user's cache folder."`
}

// Default returns the configuration without any flag.
func Default() Config { return Config{Interpreter: "python3"} }

// Validate names what is wrong with the configuration.
func (c Config) Validate() error {
	if c.Interpreter == "" {
		return fmt.Errorf("python: is empty; name an interpreter, python3 for the one on PATH")
	}
	return nil
}

// Deps are what the driver is given.
type Deps struct {
	// Log takes what happens to generations; user code has its own sink.
	Log *slog.Logger
}

// Language is the Python driver. It implements runtimeserver.Language,
// runtimeserver.Commander and runtimeserver.Host.
type Language struct {
	interpreter pyrunner.Interpreter
	pkg         pyrunner.Package
	log         *slog.Logger
	base        *base // nil before Open, and where there can be none
}

var (
	_ runtimeserver.Language  = (*Language)(nil)
	_ runtimeserver.Commander = (*Language)(nil)
	_ runtimeserver.Host      = (*Language)(nil)
)

// New finds the interpreter, once, and installs the Python package. It leaves no
// process behind.
// Errors: no such interpreter, or an older one than 3.9; those of the file system.
func New(ctx context.Context, cfg Config, deps Deps) (*Language, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cache := cfg.Cache
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find a cache folder: %w; name one with python-cache", err)
		}
		cache = filepath.Join(user, "hearth")
	}
	interpreter, err := pyrunner.FindInterpreter(ctx, cfg.Interpreter)
	if err != nil {
		return nil, err
	}
	pkg, err := pyrunner.Install(cache)
	if err != nil {
		return nil, err
	}
	return &Language{interpreter: interpreter, pkg: pkg, log: deps.Log}, nil
}

// Open makes the base that registrations grow from, which starts in the
// background. Without cgroups there is none: nobody could tell then what descends
// from which registration.
func (l *Language) Open(processes *process.Group) error {
	if processes.Path() != "" {
		l.base = openBase(l, processes)
	}
	return nil
}

// Close ends the base.
func (l *Language) Close() error {
	if l.base == nil {
		return nil
	}
	return l.base.close()
}

// Name is "python".
func (*Language) Name() string { return "python" }

// Interpreter returns the interpreter that was found.
func (l *Language) Interpreter() pyrunner.Interpreter { return l.interpreter }

// Resolve says whether handler can be one; see runtimeserver.Language.
func (*Language) Resolve(dir, handler string) error {
	_, _, err := resolve(dir, handler)
	return err
}

// Command runs `python entrypoint args…`, or `python args…`.
func (l *Language) Command(_, entrypoint string, args []string) ([]string, error) {
	argv := []string{l.interpreter.Path}
	if entrypoint != "" {
		argv = append(argv, entrypoint)
	}
	return append(argv, args...), nil
}
