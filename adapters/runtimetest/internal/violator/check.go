package violator

import (
	"os"
	"path/filepath"
	"strings"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

// check says whether the request can be served; it runs no user code.
func (r *Runtime) check(req *executorv1.RegisterFunctionRequest) error {
	invalid := func(reason, text string) error {
		return r.refuse(connect.CodeInvalidArgument, reason, req.GetRunUid(), "", text)
	}
	total := 0
	for k, v := range req.GetEnv() {
		total += len(k) + len(v)
	}
	if total > 128<<10 && !r.is("takes-large-env") {
		return invalid("INVALID_ARGUMENT", "env: more than 128 KiB in all")
	}
	info, err := os.Stat(req.GetWorkingDir())
	if err != nil || !info.IsDir() || !filepath.IsAbs(req.GetWorkingDir()) {
		if r.is("takes-any-dir") {
			return nil
		}
		return invalid("INVALID_ARGUMENT", "working_dir: not an absolute folder")
	}
	if kind := resolve(req.GetWorkingDir(), req.GetHandler()); kind != "" && !r.is("takes-handler-"+kind) {
		if r.is("refused-handler-stays") {
			g := r.create(req, nil)
			g.state = failed
			close(g.loaded)
		}
		return invalid("HANDLER_INVALID", "handler: "+kind)
	}
	return nil
}

// resolve returns in which way the handler is none, or "".
func resolve(dir, handler string) string {
	if strings.Contains(handler, "/") {
		return "escape"
	}
	file, name, ok := strings.Cut(handler, ".")
	if !ok {
		return "form"
	}
	if file == "std" {
		return "foreign"
	}
	path, err := filepath.EvalSymlinks(filepath.Join(dir, file+".fake"))
	if err != nil {
		return "missing-file"
	}
	if root, err := filepath.EvalSymlinks(dir); err != nil || filepath.Dir(path) != root {
		return "symlink"
	}
	text, err := os.ReadFile(path)
	switch {
	case err != nil:
		return "missing-file"
	case strings.Contains(string(text), "value "+name+"\n"):
		return "not-function"
	case !strings.Contains(string(text), "func "+name+"\n"):
		return "missing-function"
	}
	return ""
}
