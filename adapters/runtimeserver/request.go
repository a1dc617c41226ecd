package runtimeserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

// Bounds of requests that one field alone cannot show.
const (
	maxEnvTotal    = 128 << 10
	maxTimeout     = 15 * time.Minute
	defaultTimeout = 30 * time.Second
	maxDrain       = 5 * time.Minute
	defaultDrain   = 30 * time.Second
)

// stateDir is the server's own folder in the workspace. Run UIDs do not start
// with a dot, so no Run's folder has this name.
const stateDir = ".hearth"

// resolveDir returns the working directory with symlinks resolved, once it is
// known to lie beneath the workspace, which is resolved already.
func resolveDir(workspace, dir string) (string, error) {
	if strings.ContainsRune(dir, 0) || !filepath.IsAbs(dir) {
		return "", edge.Publicf(errArgument, "working_dir %q is not an absolute path", clip(dir, 256))
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", edge.Publicf(errArgument, "working_dir %q cannot be used: %s", clip(dir, 256), why(err))
	}
	own := filepath.Join(workspace, stateDir)
	if !beneath(workspace, resolved) || resolved == own || beneath(own, resolved) {
		return "", edge.Publicf(errArgument, "working_dir %q is not beneath the workspace of this Runtime Server (symlinks resolved)", clip(dir, 256))
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", edge.Publicf(errArgument, "working_dir %q cannot be used: %s", clip(dir, 256), why(err))
	}
	if !info.IsDir() {
		return "", edge.Publicf(errArgument, "working_dir %q is not a folder", clip(dir, 256))
	}
	return resolved, nil
}

// beneath says whether a clean absolute path lies inside a folder, which itself
// does not.
func beneath(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// why is the last part of a path error: the path was named already.
func why(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		return text[i+2:]
	}
	return text
}

// checkEnv checks what the rules of the message cannot: the sum. It checks them
// again for callers within the process that skip the rules.
func checkEnv(env map[string]string) error {
	total := 0
	for name, value := range env {
		total += len(name) + len(value)
		if strings.HasPrefix(name, "HEARTH_") || name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return edge.Publicf(errArgument, "env %q: names are [A-Za-z_][A-Za-z0-9_]* and do not start with HEARTH_, values hold no NUL", clip(name, 256))
		}
	}
	if total > maxEnvTotal {
		return edge.Publicf(errArgument, "env has %d bytes in all; at most %d, names and values counted", total, maxEnvTotal)
	}
	return nil
}

// environ builds the whole environment of user code: the server's own is never in
// it. given wins over the defaults, own over both.
func (c Config) environ(temp string, given, own map[string]string) []string {
	vars := map[string]string{"PATH": c.Path, "LANG": c.Lang, "TZ": c.TimeZone, "HOME": temp, "TMPDIR": temp}
	for _, m := range []map[string]string{given, own} {
		for name, value := range m {
			vars[name] = value
		}
	}
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// bounded returns how long something may last: 0 is the default, and beyond the
// bound or negative is the caller's mistake.
func bounded(field string, millis int64, standard, bound time.Duration) (time.Duration, error) {
	switch {
	case millis < 0 || millis > bound.Milliseconds():
		return 0, edge.Publicf(errArgument, "%s is %d; use 0 (%d) to %d", field, millis, standard.Milliseconds(), bound.Milliseconds())
	case millis == 0:
		return standard, nil
	default:
		return time.Duration(millis) * time.Millisecond, nil
	}
}

// printable says whether an invocation ID can stand in logs and headers.
func printable(id string) error {
	if len(id) > 128 {
		return edge.Publicf(errArgument, "invocation_id has %d bytes; at most 128", len(id))
	}
	for i := range len(id) {
		if id[i] < 0x20 || id[i] > 0x7e {
			return edge.Publicf(errArgument, "invocation_id holds byte %s; it must be printable ASCII", fmt.Sprintf("0x%02x", id[i]))
		}
	}
	return nil
}

// FileBeneath returns the path, symlinks resolved, of a file beneath a folder
// whose own symlinks are resolved already. It is for languages' Resolve.
// Errors: ErrHandlerInvalid with a text for the caller.
func FileBeneath(dir, name string) (string, error) {
	if !filepath.IsLocal(name) || strings.ContainsRune(name, 0) {
		return "", edge.Publicf(ErrHandlerInvalid, "file %q must lie beneath working_dir", clip(name, 256))
	}
	path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
	if err != nil {
		return "", edge.Publicf(ErrHandlerInvalid, "file %q beneath working_dir cannot be used: %s", clip(name, 256), why(err))
	}
	if !beneath(dir, path) {
		return "", edge.Publicf(ErrHandlerInvalid, "file %q leaves working_dir (symlinks resolved)", clip(name, 256))
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", edge.Publicf(ErrHandlerInvalid, "file %q beneath working_dir cannot be used: %s", clip(name, 256), why(err))
	}
	if !info.Mode().IsRegular() {
		return "", edge.Publicf(ErrHandlerInvalid, "%q beneath working_dir is not a regular file", clip(name, 256))
	}
	return path, nil
}
