// Package admission owns what a spec must mean, beyond the shape that its messages
// have: a Run that was admitted can be run as far as anybody can tell beforehand.
package admission

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// ErrInvalid is wrapped by every refusal, with a text for the caller.
var ErrInvalid = errors.New("admission: invalid")

// Bounds, in bytes where nothing else is said.
const (
	MaxInline    = 1 << 20
	MaxEnv       = 128 << 10
	MaxArgs      = 1 << 20
	maxDepth     = 32 // names in a path
	maxName      = 255
	maxOutputs   = 64 << 10
	maxOutputKey = 128
	maxOutput    = 8 << 10
)

func refuse(format string, args ...any) error { return edge.Publicf(ErrInvalid, format, args...) }

// Spec checks the spec of a new Run. Errors: ErrInvalid.
func Spec(spec *hearthv1.RunSpec) error {
	if spec.GetCancelRequested() {
		return refuse("spec.cancel_requested must not be set when a Run is created; use CancelRun later")
	}
	if err := env(spec.GetEnv()); err != nil {
		return err
	}
	if err := retry(spec.GetRetryPolicy()); err != nil {
		return err
	}
	if spec.GetFunction() != nil && spec.GetSource() == nil {
		return refuse("spec.source is missing: a function needs the file that its handler names; give inline files, git or an archive")
	}
	if t := spec.GetTask(); t != nil {
		if err := task(t, spec.GetSource() != nil); err != nil {
			return err
		}
	}
	return source(spec.GetSource())
}

func env(vars map[string]string) error {
	total := 0
	for name, value := range vars {
		total += len(name) + len(value)
	}
	if total > MaxEnv {
		return refuse("spec.env has %d bytes, names and values counted; at most %d: move large values into files of the source", total, MaxEnv)
	}
	return nil
}

func retry(p *hearthv1.RetryPolicy) error {
	if p.GetInitialBackoff() != nil && p.GetMaxBackoff() != nil && p.GetInitialBackoff().AsDuration() > p.GetMaxBackoff().AsDuration() {
		return refuse("spec.retry_policy.initial_backoff %v is longer than max_backoff %v; make it at most as long",
			p.GetInitialBackoff().AsDuration(), p.GetMaxBackoff().AsDuration())
	}
	return nil
}

func task(t *hearthv1.TaskMode, sourced bool) error {
	total := 0
	for _, arg := range t.GetArgs() {
		total += len(arg)
	}
	switch {
	case total > MaxArgs:
		return refuse("spec.task.args have %d bytes; at most %d: pass large values as files of the source", total, MaxArgs)
	case !sourced && t.GetEntrypoint() != "":
		return refuse("spec.task.entrypoint names a file, and spec.source is missing; give the source that has it")
	case !sourced && len(t.GetArgs()) == 0:
		return refuse("spec.task says nothing to run: give args, or a source with an entrypoint")
	case t.GetEntrypoint() != "":
		return path("spec.task.entrypoint", t.GetEntrypoint())
	}
	return nil
}

func source(s *hearthv1.Source) error {
	switch kind := s.GetKind().(type) {
	case *hearthv1.Source_Inline:
		return inline(kind.Inline)
	case *hearthv1.Source_Git:
		return git(kind.Git)
	}
	return nil
}

// inline refuses what two file systems could take in two ways: names that differ
// in case only, and a name that is a file here and a folder there.
func inline(s *hearthv1.InlineSource) error {
	total := 0
	files, folders := map[string]string{}, map[string]string{}
	for _, f := range s.GetFiles() {
		total += len(f.GetContent()) + len(f.GetText())
		if err := path("spec.source.inline.files.path", f.GetPath()); err != nil {
			return err
		}
		key := strings.ToLower(f.GetPath())
		if other, taken := files[key]; taken {
			return refuse("spec.source.inline.files has %q and %q, which are one file where case does not count; rename one", other, f.GetPath())
		}
		files[key] = f.GetPath()
		for i := strings.LastIndexByte(f.GetPath(), '/'); i > 0; i = strings.LastIndexByte(f.GetPath()[:i], '/') {
			folder := f.GetPath()[:i]
			if other, taken := folders[strings.ToLower(folder)]; taken && other != folder {
				return refuse("spec.source.inline.files has the folders %q and %q, which are one where case does not count; rename one", other, folder)
			}
			folders[strings.ToLower(folder)] = folder
		}
	}
	for key, name := range files {
		if folder, both := folders[key]; both {
			return refuse("spec.source.inline.files has %q as a file and %q as a folder; rename one", name, folder)
		}
	}
	if total > MaxInline {
		return refuse("spec.source.inline has %d bytes in all; at most %d: upload an archive or use git", total, MaxInline)
	}
	return nil
}

// path checks a relative path of the source.
func path(field, p string) error {
	names := strings.Split(p, "/")
	if len(names) > maxDepth {
		return refuse("%s %q has %d names; at most %d", field, p, len(names), maxDepth)
	}
	for _, name := range names {
		switch {
		case name == "" || name == "." || name == "..":
			return refuse(`%s %q must be relative, with "/" between names and none of them empty, "." or ".."`, field, p)
		case len(name) > maxName:
			return refuse("%s has a name of %d bytes; at most %d", field, len(name), maxName)
		}
	}
	if !utf8.ValidString(p) || strings.ContainsFunc(p, unprintable) {
		return refuse("%s %q must be printable UTF-8 without a backslash", field, p)
	}
	return nil
}

func unprintable(r rune) bool { return r == '\\' || !unicode.IsPrint(r) }

func git(s *hearthv1.GitSource) error {
	u, err := url.Parse(s.GetUrl())
	if err != nil || !schemes[u.Scheme] {
		return refuse("spec.source.git.url must be an https, http, ssh, git or file URL")
	}
	ref := s.GetRef()
	if strings.HasPrefix(ref, "-") || strings.Contains(ref, "..") || strings.ContainsFunc(ref, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(`~^:?*[\`, r)
	}) {
		return refuse("spec.source.git.ref %q must be the name of a branch, tag or commit", ref)
	}
	if s.GetSubdirectory() != "" {
		return path("spec.source.git.subdirectory", s.GetSubdirectory())
	}
	return nil
}

// schemes is read only. Transports that run a command of the URL are not among them.
var schemes = map[string]bool{"https": true, "http": true, "ssh": true, "git": true, "file": true}

// Outputs checks what a task has put out, as its node reports it. Errors: ErrInvalid.
func Outputs(outputs map[string]string) error {
	total := 0
	for key, value := range outputs {
		total += len(key) + len(value)
		if key == "" || len(key) > maxOutputKey || len(value) > maxOutput {
			return refuse("finished.outputs: a key has 1 to %d bytes and a value at most %d", maxOutputKey, maxOutput)
		}
	}
	if total > maxOutputs {
		return refuse("finished.outputs have %d bytes, keys and values counted; at most %d", total, maxOutputs)
	}
	return nil
}
