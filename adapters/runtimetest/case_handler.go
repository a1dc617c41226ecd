package runtimetest

import (
	"os"
	"path/filepath"

	"connectrpc.com/connect/v2"
)

func handlerCases() []Case {
	return []Case{
		must("FR-HND-01", notesOpen, "A string that has not the form of a handler is InvalidArgument.", invalidHandler("form"), "invalid:form"),
		must("FR-HND-02", notesOpen, "A handler whose file is missing is InvalidArgument.", invalidHandler("missing_file"), "invalid:missing_file"),
		must("FR-HND-03", notesOpen, "A handler whose function is missing is InvalidArgument.", invalidHandler("missing_function"), "invalid:missing_function"),
		must("FR-HND-04", notesOpen, "A name that is not a function is InvalidArgument.", invalidHandler("not_function"), "invalid:not_function"),
		must("FR-HND-05", notesOpen, "A handler path that leaves the working directory is InvalidArgument.", invalidHandler("escape"), "invalid:escape"),
		must("FR-HND-06", notesOpen, "A symbolic link that leaves the working directory is InvalidArgument.", symlinkHandler, "symlink"),
		must("FR-HND-07", notesOpen, "A function of the language's own library is no handler.", invalidHandler("foreign"), "invalid:foreign"),
		must("FR-HND-08", notesOpen, "A refused handler leaves no registration behind, and the same attempt can be registered rightly.", invalidLeavesNothing, "invalid:missing_function", "echo"),
	}
}

func invalidHandler(kind string) func(*T) {
	return func(t *T) {
		f := t.function("echo")
		f.req.Handler = t.target.Fixtures.Manifest.Invalid[kind]
		_, err := f.register()
		t.refused(err, "the handler "+f.req.GetHandler(), connect.CodeInvalidArgument, "HANDLER_INVALID")
	}
}

func symlinkHandler(t *T) {
	link := t.target.Fixtures.Manifest.Symlink
	f := t.function("echo")
	outside := t.path(name("outside"))
	t.must(os.Rename(filepath.Join(f.dir, link.Target), outside))
	t.must(os.Symlink(outside, filepath.Join(f.dir, link.Link)))
	f.req.Handler = link.Handler
	_, err := f.register()
	t.refused(err, "the handler behind the link", connect.CodeInvalidArgument, "HANDLER_INVALID")
}

func invalidLeavesNothing(t *T) {
	f := t.function("echo")
	right := f.req.GetHandler()
	f.req.Handler = t.target.Fixtures.Manifest.Invalid["missing_function"]
	_, err := f.register()
	t.refused(err, "the handler", connect.CodeInvalidArgument)
	_, err = t.status(f.stranger())
	t.refused(err, "FunctionStatus after the refusal", connect.CodeNotFound)
	f.req.Handler, f.req.RegistrationDigest = right, digest("right")
	f.becomeReady()
}
