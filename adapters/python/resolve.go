package python

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// handlerForm is module.function, the module with dots for packages. Letters are
// those of ASCII: a name that looks like another one is nobody's handler.
var handlerForm = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)\.([A-Za-z_][A-Za-z0-9_]*)$`)

// resolve takes a handler apart, and makes sure that its module is a file beneath
// dir, with symlinks resolved.
// Errors: ErrHandlerInvalid with a text for the caller.
func resolve(dir, handler string) (module, function string, err error) {
	form := handlerForm.FindStringSubmatch(handler)
	if form == nil {
		return "", "", edge.Publicf(runtimeserver.ErrHandlerInvalid,
			"handler %q is not module.function: name a file without .py and a function in it, as app.handle for def handle(event) in app.py", handler)
	}
	module, function = form[1], form[2]
	base := filepath.Join(dir, filepath.FromSlash(strings.ReplaceAll(module, ".", "/")))
	for _, path := range []string{filepath.Join(base, "__init__.py"), base + ".py"} {
		found, err := beneath(dir, path)
		if err != nil {
			return "", "", edge.Publicf(runtimeserver.ErrHandlerInvalid, "handler %q: %v", handler, err)
		}
		if found {
			return module, function, nil
		}
	}
	return "", "", edge.Publicf(runtimeserver.ErrHandlerInvalid,
		"handler %q: there is no file %s.py in the working directory: the part before the last dot names the file", handler, strings.ReplaceAll(module, ".", "/"))
}

// beneath says whether path is a regular file that lies beneath dir.
// Errors: it is something else, or somewhere else.
func beneath(dir, path string) (bool, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false, errors.New("the working directory is not there")
	}
	name, _ := filepath.Rel(dir, path)
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, errors.New(name + " cannot be read")
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return false, errors.New(name + " leaves the working directory")
	}
	info, err := os.Stat(real)
	if err != nil || !info.Mode().IsRegular() {
		return false, errors.New(name + " is not a regular file")
	}
	return true, nil
}
