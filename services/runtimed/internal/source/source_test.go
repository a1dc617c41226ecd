package source_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/runtimed/internal/folder"
	"github.com/hearth-run/hearth/services/runtimed/internal/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func preparer(t *testing.T, change ...func(*source.Config)) (*source.Preparer, string) {
	t.Helper()
	cfg := source.Config{
		Workspace: filepath.Join(t.TempDir(), "workspace"), Limits: folder.Limits{Files: 100, Bytes: 1 << 20},
		Timeout: time.Minute, FileURLs: true,
	}
	for _, c := range change {
		c(&cfg)
	}
	p, err := source.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p, cfg.Workspace
}

func inline(files ...*hearthv1.InlineFile) *hearthv1.Source {
	return &hearthv1.Source{Kind: &hearthv1.Source_Inline{Inline: &hearthv1.InlineSource{Files: files}}}
}

func text(path, content string) *hearthv1.InlineFile {
	return &hearthv1.InlineFile{Path: path, Data: &hearthv1.InlineFile_Text{Text: content}}
}

func names(t *testing.T, dir string) (out []string) {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestInline(t *testing.T) {
	p, workspace := preparer(t)
	a, err := p.Prepare(t.Context(), "run-1", inline(text("a.py", "1"), text("lib/b.py", "2")))
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Prepare(t.Context(), "run-2", inline(text("lib/b.py", "2"), &hearthv1.InlineFile{Path: "a.py", Data: &hearthv1.InlineFile_Content{Content: []byte("1")}}))
	if err != nil || a.Identity != b.Identity || !strings.HasPrefix(a.Identity, "inline:") {
		t.Errorf("order or kind changed the identity: %q %q %v", a.Identity, b.Identity, err)
	}
	c, err := p.Prepare(t.Context(), "run-1", inline(text("a.py", "3")))
	if err != nil || c.Identity == a.Identity || !slices.Equal(names(t, c.Dir), []string{"a.py"}) {
		t.Errorf("the earlier contents are still there: %q %v %v", c.Identity, names(t, c.Dir), err)
	}
	if got := names(t, workspace); !slices.Equal(got, []string{"run-1", "run-2"}) {
		t.Errorf("workspace has %v", got)
	}
	if err := errors.Join(p.Remove("run-1"), p.Remove("run-1"), p.Remove("run-2")); err != nil || len(names(t, workspace)) > 0 {
		t.Errorf("after removal: %v %v", names(t, workspace), err)
	}
}

// What is refused leaves nothing, and does not touch what was there.
func TestInvalid(t *testing.T) {
	big := strings.Repeat("x", 600_000)
	for name, tc := range map[string]struct {
		uid string
		src *hearthv1.Source
	}{
		"parent":       {"run-1", inline(text("../x", ""))},
		"absolute":     {"run-1", inline(text("/x", ""))},
		"dot":          {"run-1", inline(text("./x", ""))},
		"case":         {"run-1", inline(text("X", ""), text("x", ""))},
		"too large":    {"run-1", inline(text("a", big), text("b", big))},
		"uid":          {"../run", inline(text("a", ""))},
		"uid is empty": {"", inline(text("a", ""))},
		"no archives":  {"run-1", &hearthv1.Source{Kind: &hearthv1.Source_Archive{Archive: &hearthv1.ArchiveSource{Sha256: strings.Repeat("0", 64)}}}},
		"scheme":       {"run-1", git("ext::sh -c true", "main", "")},
		"option":       {"run-1", git("--upload-pack=true", "main", "")},
		"ref":          {"run-1", git("https://127.0.0.1:1/x", "--upload-pack=true", "")},
		"subdirectory": {"run-1", git("https://127.0.0.1:1/x", "main", "../..")},
	} {
		p, workspace := preparer(t)
		_, err := p.Prepare(t.Context(), tc.uid, tc.src)
		if !errors.Is(err, source.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if left := names(t, workspace); len(left) > 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
}

// A process died while it prepared: the next one sweeps that, and nothing else.
func TestSweep(t *testing.T) {
	p, workspace := preparer(t)
	if err := p.Sweep(); err != nil {
		t.Errorf("without a workspace: %v", err)
	}
	for _, dir := range []string{".hearth-prepare-1/a", "run-1", "other"} {
		if err := os.MkdirAll(filepath.Join(workspace, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(workspace, ".hearth-prepare-1/a"), 0); err != nil {
		t.Fatal(err)
	}
	if err := p.Sweep(); err != nil || !slices.Equal(names(t, workspace), []string{"other", "run-1"}) {
		t.Errorf("%v %v", names(t, workspace), err)
	}
}

func git(url, ref, sub string) *hearthv1.Source {
	return &hearthv1.Source{Kind: &hearthv1.Source_Git{Git: &hearthv1.GitSource{Url: url, Ref: ref, Subdirectory: sub}}}
}

// repository is a repository with hooks, a submodule's link and a filter.
func repository(t *testing.T) (url string, run func(args ...string) string) {
	t.Helper()
	dir := t.TempDir()
	run = func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "--quiet", "--initial-branch=main")
	write(t, filepath.Join(dir, "app.py"), "x = 1\n")
	write(t, filepath.Join(dir, "sub/inner.py"), "y = 2\n")
	write(t, filepath.Join(dir, ".gitattributes"), "*.py filter=evil\n")
	run("add", ".")
	run("commit", "--quiet", "-m", "one")
	return "file://" + dir, run
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGit(t *testing.T) {
	url, run := repository(t)
	first := run("rev-parse", "HEAD")
	run("tag", "v1")
	run("commit", "--quiet", "--allow-empty", "-m", "two")
	second := run("rev-parse", "HEAD")
	p, workspace := preparer(t)
	for _, tc := range []struct{ ref, sub, commit, file string }{
		{"main", "", second, "app.py"}, {"v1", "", first, "app.py"}, {"refs/tags/v1", "", first, "app.py"},
		{first, "", first, "app.py"}, {"main", "sub", second, "inner.py"}, {"main", "/sub/", second, "inner.py"},
	} {
		got, err := p.Prepare(t.Context(), "run-1", git(url, tc.ref, tc.sub))
		if err != nil || got.Identity != "git:"+tc.commit {
			t.Errorf("%s %q: %+v %v", tc.ref, tc.sub, got, err)
			continue
		}
		if _, err := os.Stat(filepath.Join(got.Dir, tc.file)); err != nil {
			t.Error(err)
		}
	}
	for name, src := range map[string]*hearthv1.Source{
		"no such ref":          git(url, "nothere", ""),
		"no such commit":       git(url, strings.Repeat("1", 40), ""),
		"no such subdirectory": git(url, "main", "nothere"),
		"a file":               git(url, "main", "app.py"),
	} {
		if _, err := p.Prepare(t.Context(), "run-2", src); !errors.Is(err, source.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.Prepare(t.Context(), "run-2", git("file:///nowhere/at/all", "main", "")); !errors.Is(err, source.ErrUnavailable) {
		t.Errorf("no repository: %v", err)
	}
	if got := names(t, workspace); !slices.Equal(got, []string{"run-1"}) {
		t.Errorf("workspace has %v", got)
	}
}

func TestGitRefusesLinks(t *testing.T) {
	url, run := repository(t)
	dir := strings.TrimPrefix(url, "file://")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	run("add", ".")
	run("commit", "--quiet", "-m", "link")
	p, workspace := preparer(t)
	if _, err := p.Prepare(t.Context(), "run-1", git(url, "main", "")); !errors.Is(err, source.ErrInvalid) || !strings.Contains(err.Error(), "is a link") {
		t.Error(err)
	}
	if left := names(t, workspace); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	closed, _ := preparer(t, func(c *source.Config) { c.FileURLs = false })
	if _, err := closed.Prepare(t.Context(), "run-1", git(url, "main", "")); !errors.Is(err, source.ErrInvalid) || !strings.Contains(err.Error(), "--git-files") {
		t.Errorf("file:// without leave: %v", err)
	}
}

// A server that never answers does not hold a preparation for ever, and no git
// process is left.
func TestGitTimeout(t *testing.T) {
	silent, err := silence(t)
	if err != nil {
		t.Fatal(err)
	}
	p, workspace := preparer(t, func(c *source.Config) { c.Timeout = 300 * time.Millisecond })
	_, err = p.Prepare(t.Context(), "run-1", git("http://"+silent+"/x.git", "main", ""))
	if !errors.Is(err, source.ErrUnavailable) || !strings.Contains(err.Error(), "longer than") {
		t.Error(err)
	}
	if left := names(t, workspace); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

type shelf map[string][]byte

func (s shelf) Open(_ context.Context, sum string) (io.ReadCloser, error) {
	if s[sum] == nil {
		return nil, fmt.Errorf("%w: no archive %s was uploaded", source.ErrInvalid, sum)
	}
	return io.NopCloser(bytes.NewReader(s[sum])), nil
}

func TestArchive(t *testing.T) {
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	w := tar.NewWriter(gz)
	err := errors.Join(w.WriteHeader(&tar.Header{Name: "a.py", Typeflag: tar.TypeReg, Mode: 0o644}), w.Close(), gz.Close())
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(packed.Bytes())
	sum, other := hex.EncodeToString(digest[:]), strings.Repeat("0", 64)
	p, workspace := preparer(t, func(c *source.Config) { c.Archives = shelf{sum: packed.Bytes(), other: packed.Bytes()} })
	archive := func(sum string) *hearthv1.Source {
		return &hearthv1.Source{Kind: &hearthv1.Source_Archive{Archive: &hearthv1.ArchiveSource{Sha256: sum}}}
	}
	got, err := p.Prepare(t.Context(), "run-1", archive(sum))
	if err != nil || got.Identity != "archive:"+sum || !slices.Equal(names(t, got.Dir), []string{"a.py"}) {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := p.Prepare(t.Context(), "run-2", archive(other)); !errors.Is(err, source.ErrUnavailable) || !strings.Contains(err.Error(), sum) {
		t.Errorf("another sum: %v", err)
	}
	if _, err := p.Prepare(t.Context(), "run-2", archive(strings.Repeat("1", 64))); !errors.Is(err, source.ErrInvalid) {
		t.Errorf("never uploaded: %v", err)
	}
	if got := names(t, workspace); !slices.Equal(got, []string{"run-1"}) {
		t.Errorf("workspace has %v", got)
	}
}
