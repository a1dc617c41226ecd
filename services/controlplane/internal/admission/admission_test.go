package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
)

func files(sizes map[string]int, paths ...string) *hearthv1.Source {
	in := &hearthv1.InlineSource{}
	for _, p := range paths {
		in.Files = append(in.Files, &hearthv1.InlineFile{Path: p, Data: &hearthv1.InlineFile_Content{Content: make([]byte, sizes[p])}})
	}
	return &hearthv1.Source{Kind: &hearthv1.Source_Inline{Inline: in}}
}

func repo(url, ref, sub string) *hearthv1.Source {
	return &hearthv1.Source{Kind: &hearthv1.Source_Git{Git: &hearthv1.GitSource{Url: url, Ref: ref, Subdirectory: sub}}}
}

func TestSource(t *testing.T) {
	for _, tc := range []struct {
		name   string
		source *hearthv1.Source
		says   string // a word of the refusal, empty: admitted
	}{
		{"files", files(nil, "a.py", "b/c.py", "b/d/e.py", "B.py"), ""},
		{"other scripts", files(nil, "größe/ключ.py"), ""},
		{"dots in names", files(nil, "..a", "b..", ".hidden"), ""},
		{"absolute", files(nil, "/etc/passwd"), "relative"},
		{"leaves", files(nil, "a/../../b"), "relative"},
		{"leaves at once", files(nil, ".."), "relative"},
		{"here", files(nil, "./a"), "relative"},
		{"empty name", files(nil, "a//b"), "relative"},
		{"folder", files(nil, "a/"), "relative"},
		{"backslash", files(nil, `a\..\b`), "backslash"},
		{"newline", files(nil, "a\nb"), "printable"},
		{"NUL", files(nil, "a\x00b"), "printable"},
		{"no UTF-8", files(nil, "a\xffb"), "UTF-8"},
		{"long name", files(nil, strings.Repeat("a", 256)), "256 bytes"},
		{"deep", files(nil, strings.Repeat("a/", 32)+"b"), "33 names"},
		{"twice", files(nil, "a", "a"), "rename"},
		{"case", files(nil, "a/B", "a/b"), "case"},
		{"case of a folder", files(nil, "a/x", "A/y"), "case"},
		{"file and folder", files(nil, "a", "a/b"), "folder"},
		{"file and folder by case", files(nil, "x/A/b", "x/a"), "folder"},
		{"full", files(map[string]int{"a": MaxInline - 1, "b": 1}, "a", "b"), ""},
		{"one byte more", files(map[string]int{"a": MaxInline, "b": 1}, "a", "b"), "1048577"},
		{"git", repo("https://example.com/x.git", "v1.2", "a/b"), ""},
		{"git that runs", repo("ext::sh -c id", "main", ""), "git.url"},
		{"git by option", repo("--upload-pack=id", "main", ""), "git.url"},
		{"ref by option", repo("https://x/y", "--output=/etc/x", ""), "git.ref"},
		{"ref of a range", repo("https://x/y", "a..b", ""), "git.ref"},
		{"ref of a spec", repo("https://x/y", "a:b", ""), "git.ref"},
		{"subdirectory leaves", repo("https://x/y", "main", "../x"), "relative"},
	} {
		err := Spec(&hearthv1.RunSpec{Source: tc.source, Mode: &hearthv1.RunSpec_Function{Function: &hearthv1.FunctionMode{Handler: "a.b"}}})
		check(t, tc.name, err, tc.says)
	}
}

func check(t *testing.T, name string, err error, says string) {
	t.Helper()
	switch {
	case says == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case says != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), says)):
		t.Errorf("%s: %v, which does not say %q", name, err, says)
	}
}

func TestSpec(t *testing.T) {
	function := &hearthv1.RunSpec_Function{Function: &hearthv1.FunctionMode{Handler: "a.b"}}
	task := func(entrypoint string, args ...string) *hearthv1.RunSpec_Task {
		return &hearthv1.RunSpec_Task{Task: &hearthv1.TaskMode{Entrypoint: entrypoint, Args: args}}
	}
	source := files(nil, "a.py")
	large := strings.Repeat("x", 32<<10)
	for _, tc := range []struct {
		name string
		spec *hearthv1.RunSpec
		says string
	}{
		{"function", &hearthv1.RunSpec{Mode: function, Source: source}, ""},
		{"no source", &hearthv1.RunSpec{Mode: function}, "source is missing"},
		{"cancelled", &hearthv1.RunSpec{Mode: function, Source: source, CancelRequested: true}, "cancel_requested"},
		{"env", &hearthv1.RunSpec{Mode: function, Source: source, Env: map[string]string{"A": large, "B": large, "C": large, "D": large[4:]}}, ""},
		{"one byte more", &hearthv1.RunSpec{Mode: function, Source: source, Env: map[string]string{"A": large, "B": large, "C": large, "D": large[3:]}}, "131073"},
		{"backoff", &hearthv1.RunSpec{Mode: function, Source: source, RetryPolicy: &hearthv1.RetryPolicy{
			InitialBackoff: durationpb.New(2 * time.Second), MaxBackoff: durationpb.New(time.Second)}}, "longer"},
		{"task", &hearthv1.RunSpec{Mode: task("", "echo hi")}, ""},
		{"task of a file", &hearthv1.RunSpec{Mode: task("a.py"), Source: source}, ""},
		{"task of a script", &hearthv1.RunSpec{Mode: task(""), Source: source}, ""},
		{"nothing to run", &hearthv1.RunSpec{Mode: task("")}, "nothing to run"},
		{"no file to run", &hearthv1.RunSpec{Mode: task("a.py")}, "source"},
		{"entrypoint leaves", &hearthv1.RunSpec{Mode: task("../a.py"), Source: source}, "relative"},
		{"args", &hearthv1.RunSpec{Mode: task("", strings.Repeat("x", MaxArgs+1))}, "args"},
	} {
		check(t, tc.name, Spec(tc.spec), tc.says)
	}
}

func TestOutputs(t *testing.T) {
	check(t, "none", Outputs(nil), "")
	check(t, "some", Outputs(map[string]string{"k": strings.Repeat("v", maxOutput)}), "")
	check(t, "no key", Outputs(map[string]string{"": "v"}), "key")
	check(t, "long key", Outputs(map[string]string{strings.Repeat("k", 129): "v"}), "key")
	check(t, "long value", Outputs(map[string]string{"k": strings.Repeat("v", maxOutput+1)}), "value")
	many := map[string]string{}
	for i := range 9 {
		many[fmt.Sprint(i)] = strings.Repeat("v", maxOutput)
	}
	check(t, "too many", Outputs(many), "65536")
}
