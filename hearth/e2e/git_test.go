package e2e

import (
	"encoding/json"
	"io"
	"net"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is a git repository with a working tree, served over HTTP on this
// machine by git itself.
type repository struct {
	t        *testing.T
	dir, url string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	root := t.TempDir()
	r := &repository{t: t, dir: filepath.Join(root, "code")}
	if err := os.Mkdir(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.git("init", "--quiet", "--initial-branch=main")
	backend := filepath.Join(r.git("--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git is installed without its HTTP server")
	}
	server := httptest.NewServer(&cgi.Handler{
		Path:       backend,
		Env:        []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
		InheritEnv: []string{"PATH"}, Stderr: io.Discard,
	})
	t.Cleanup(server.Close)
	r.url = server.URL + "/code/.git"
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit makes main say word and returns the commit.
func (r *repository) commit(word string) string {
	r.t.Helper()
	file := filepath.Join(r.dir, "functions", "say.sh")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("word() { ls \"$PWD\" | tr '\\n' ' '; printf "+word+"; }\n"), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.git("add", ".")
	r.git("commit", "--quiet", "-m", word)
	return r.git("rev-parse", "HEAD")
}

// booby makes a home whose git configuration runs a hook at each change of a ref,
// and returns the file that the hook leaves.
func booby(t *testing.T) (marker string) {
	t.Helper()
	home := t.TempDir()
	marker = filepath.Join(home, "hooked")
	hook := "#!/bin/sh\ntouch " + marker + "\n"
	if err := os.WriteFile(filepath.Join(home, "reference-transaction"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\thooksPath = "+home+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	return marker
}

func (h *house) identity(t *testing.T, name string) string {
	t.Helper()
	var run struct {
		Status struct{ SourceIdentity string }
	}
	out, _ := h.run(t, 0, "run", "get", name, "-o", "json")
	if err := json.Unmarshal([]byte(out), &run); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return run.Status.SourceIdentity
}

// A ref becomes a commit once: the Run says which, and stays with it wherever the
// ref goes and wherever the Run does. Hooks and submodules have no part in it.
func TestGitSource(t *testing.T) {
	repo, submodule := newRepository(t), newRepository(t)
	submodule.commit("inner")
	repo.git("submodule", "--quiet", "add", submodule.dir, "functions/module")
	first := repo.commit("one")
	marker := booby(t)
	data := t.TempDir()
	h := spawn(t, data)
	from := []string{"--runtime", "bash", "--handler", "say.word", "--git", repo.url, "--subdirectory", "functions", "--wait"}
	h.run(t, 0, append([]string{"run", "create", "branch", "--ref", "main"}, from...)...)
	if got := h.identity(t, "branch"); got != "git:"+first {
		t.Errorf("the Run is of %q, want commit %s", got, first)
	}
	if got := h.call(t, "branch", "{}"); got.body != "module say.sh one" {
		t.Errorf("%d %q", got.status, got.body)
	}
	if files, err := filepath.Glob(filepath.Join(data, "workspace-bash", h.uid(t, "branch"), "module", "*")); err != nil || len(files) > 0 {
		t.Errorf("of the submodule there are %v %v", files, err)
	}
	second := repo.commit("two")
	h.run(t, 0, append([]string{"run", "create", "commit", "--ref", first}, from...)...)
	h.run(t, 0, append([]string{"run", "create", "head"}, from...)...)
	for name, want := range map[string]struct{ commit, answer string }{
		"branch": {first, "one"}, "commit": {first, "one"}, "head": {second, "two"},
	} {
		if got := h.identity(t, name); got != "git:"+want.commit {
			t.Errorf("%s is of %q, want %s", name, got, want.commit)
		}
		if got := h.call(t, name, "{}"); !strings.HasSuffix(got.body, want.answer) {
			t.Errorf("%s says %q, want %q", name, got.body, want.answer)
		}
	}

	// A stop gives the Run back, and its folder goes: the next life fetches anew.
	h.stop()
	again := spawn(t, data)
	again.run(t, 0, "run", "wait", "branch")
	if got := again.call(t, "branch", "{}"); got.body != "module say.sh one" || again.identity(t, "branch") != "git:"+first {
		t.Errorf("after a move the Run says %q and is of %q", got.body, again.identity(t, "branch"))
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a hook ran")
	}
	// The trap is one: git on its own steps into it.
	clone := exec.Command("git", "clone", "--quiet", repo.url, filepath.Join(t.TempDir(), "clone"))
	if out, err := clone.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Errorf("the hook would not have run in any case: %v", err)
	}
}

// What is wrong with a repository is said in words, and leaves nothing behind.
func TestGitSourceRefused(t *testing.T) {
	repo := newRepository(t)
	repo.commit("one")
	if err := os.Symlink("/etc/passwd", filepath.Join(repo.dir, "link")); err != nil {
		t.Fatal(err)
	}
	repo.git("checkout", "--quiet", "-b", "linked")
	repo.commit("link")
	h := up(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	h.join(t, "hasty", "--runtime", "hasty", "--source-timeout", "300ms", "--workspace", filepath.Join(h.data, "workspace-hasty"))
	for name, tc := range map[string]struct {
		runtime string
		args    []string
		code    int
		want    []string
	}{
		"noref":     {"bash", []string{repo.url, "--ref", "nothere"}, 1, []string{"SOURCE_INVALID", `"nothere" is not in ` + repo.url}},
		"nocommit":  {"bash", []string{repo.url, "--ref", strings.Repeat("1", 40)}, 1, []string{"SOURCE_INVALID"}},
		"option":    {"bash", []string{repo.url, "--ref=--upload-pack=touch"}, 1, []string{"must be the name of a branch, tag or commit"}},
		"nofolder":  {"bash", []string{repo.url, "--subdirectory", "nowhere"}, 1, []string{"SOURCE_INVALID", `"nowhere" is no folder of commit`}},
		"upwards":   {"bash", []string{repo.url, "--subdirectory", "../.."}, 1, []string{"spec.source.git.subdirectory"}},
		"links":     {"bash", []string{repo.url, "--ref", "linked"}, 1, []string{"SOURCE_INVALID", "is a link"}},
		"norepo":    {"bash", []string{repo.url + "x"}, 1, []string{"SOURCE_UNAVAILABLE"}},
		"transport": {"bash", []string{"ext::sh -c touch% pwned"}, 1, []string{"must be an https, http, ssh, git or file URL"}},
		"localfile": {"bash", []string{"file://" + repo.dir}, 1, []string{"SOURCE_INVALID", "https, http, ssh or git"}},
		"silence":   {"hasty", []string{"http://" + silent.Addr().String() + "/x.git"}, 1, []string{"SOURCE_UNAVAILABLE", "longer than 300ms"}},
	} {
		args := append([]string{"run", "create", name, "--runtime", tc.runtime, "--handler", "say.word", "--wait", "--git"}, tc.args...)
		_, stderr := h.run(t, tc.code, args...)
		for _, want := range tc.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s: no %q in %s", name, want, stderr)
			}
		}
	}
	for _, dir := range []string{"workspace-bash", "workspace-hasty"} {
		if left, err := filepath.Glob(filepath.Join(h.data, dir, "[^.]*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v %v", dir, left, err)
		}
		if left, err := filepath.Glob(filepath.Join(h.data, dir, ".hearth-prepare-*")); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v %v", dir, left, err)
		}
	}
}
