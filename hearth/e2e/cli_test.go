package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Every client command against one house.
func TestCommands(t *testing.T) {
	h := up(t)
	hello := []string{"--runtime", "python", "--handler", "app.hello", "--source", examples("python", "hello", "app.py")}
	out, stderr := h.run(t, 0, append([]string{"run", "create", "hello", "--wait", "-o", "name", "-l", "team=a", "-e", "GREETING=x=y"}, hello...)...)
	if out != "hello\n" || !strings.Contains(stderr, "READY") {
		t.Errorf("create printed %q and %q", out, stderr)
	}
	h.run(t, 0, append([]string{"run", "create", "other"}, hello...)...)
	if _, stderr := h.run(t, 1, append([]string{"run", "create", "hello"}, hello...)...); !strings.Contains(stderr, "hello") {
		t.Errorf("a name that is taken: %q", stderr)
	}
	h.run(t, 0, "run", "wait", "other")

	if out, _ := h.run(t, 0, "run", "list", "-o", "name"); out != "hello\nother\n" {
		t.Errorf("list -o name: %q", out)
	}
	if out, _ := h.run(t, 0, "run", "list", "-l", "team=a", "--phase", "ready", "-A"); !strings.Contains(out, "default") || strings.Contains(out, "other") {
		t.Errorf("filtered list: %q", out)
	}
	var runs []struct {
		Name string
		Spec struct{ Env map[string]string }
	}
	out, _ = h.run(t, 0, "run", "list", "-o", "json")
	if err := json.Unmarshal([]byte(out), &runs); err != nil || len(runs) != 2 || runs[0].Spec.Env["GREETING"] != "x=y" {
		t.Errorf("list -o json: %v %q", err, out)
	}
	if out, _ := h.run(t, 0, "run", "get", "hello", "-o", "yaml"); !strings.Contains(out, "name: hello\n") {
		t.Errorf("get -o yaml: %q", out)
	}
	if out, _ := h.run(t, 0, "run", "get", "hello"); !strings.Contains(strings.Join(strings.Fields(out), " "), "Phase: READY") {
		t.Errorf("get: %q", out)
	}
	if out, _ := h.run(t, 0, "node", "list"); !strings.Contains(out, "python") || !strings.Contains(out, "bash") {
		t.Errorf("node list: %q", out)
	}
	if out, _ := h.run(t, 0, "status"); !strings.Contains(out, "2 ready") || !strings.Contains(out, "1 python ready") {
		t.Errorf("status: %q", out)
	}
	if out, _ := h.run(t, 0, "invoke", "hello", "-o", "json", "--invocation-id", "mine"); !strings.Contains(out, `"invocationId": "mine"`) {
		t.Errorf("invoke -o json: %q", out)
	}
	h.run(t, 0, "run", "cancel", "hello", "--wait")
	h.run(t, 1, "run", "wait", "hello")
	h.run(t, 0, "run", "delete", "hello", "other", "--wait")
	if out, _ := h.run(t, 0, "run", "list", "-o", "name"); out != "" {
		t.Errorf("after delete: %q", out)
	}
}

func TestExitCodes(t *testing.T) {
	h := up(t)
	h.run(t, 0, "run", "create", "waits", "--runtime", "cobol", "--handler", "a.b", "--source", examples("python", "hello"))
	_, stderr := h.run(t, 124, "run", "wait", "waits", "--timeout", "50ms")
	if !strings.Contains(stderr, "NO_NODE") || !strings.Contains(stderr, "50ms") {
		t.Errorf("a wait that timed out said %q", stderr)
	}
	for _, usage := range [][]string{
		{"run", "create", "x"}, {"run", "nothing"}, {"run", "list", "--phase", "gone"}, {"invoke", "x", "-d", "@/not/there"},
		{"run", "create", "x", "-r", "python", "--handler", "a.b", "--source", "/not/there"}, {"run", "watch", "-o", "yaml"},
		{"version", "--unknown"},
	} {
		h.run(t, 2, usage...)
	}
	h.run(t, 1, "run", "get", "nobody")
	h.stop()
	_, stderr = h.run(t, 1, "run", "list")
	if !strings.Contains(stderr, "hearth up") || !strings.Contains(stderr, "--control-plane") {
		t.Errorf("without a house it said %q", stderr)
	}
}

// A watch shows the Runs that there are, then each change, and ends when told.
func TestWatch(t *testing.T) {
	h := up(t)
	h.create(t, "first", "bash", "hello.greet", examples("bash", "hello"))
	watch := command("run", "watch", "--control-plane", h.doors["controlplane"])
	pipe, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	lines := newLines(pipe)
	lines.until(t, "first: READY")
	h.create(t, "second", "bash", "hello.greet", examples("bash", "hello"))
	lines.until(t, "second: READY")
	h.run(t, 0, "run", "delete", "second", "--wait")
	lines.until(t, "DELETED")
	watch.Process.Signal(os.Interrupt)
	lines.rest()
	if err := watch.Wait(); err != nil {
		t.Errorf("a watch that was stopped: %v", err)
	}
}

// A folder is taken as it is; what cannot be a source says why.
func TestSources(t *testing.T) {
	h := up(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("app.py", "import os\nfrom lib import words\n\ndef hello(event):\n    return [words.HI, os.path.exists('.git'), len(open('raw', 'rb').read())]\n")
	write("lib/__init__.py", "")
	write("lib/words.py", "HI = 'hi'\n")
	write("raw", "\xff\x00\xfe")
	write(".git/config", "secret")
	h.create(t, "folder", "python", "app.hello", dir)
	if got := h.call(t, "folder", "null"); got.body != `["hi",false,3]` {
		t.Errorf("%d %s", got.status, got.body)
	}
	// What is too large for a Run itself travels as an archive.
	write("data.bin", strings.Repeat("x", 1<<20))
	h.create(t, "large", "python", "app.hello", dir)
	if got := h.call(t, "large", "null"); got.body != `["hi",false,3]` {
		t.Errorf("%d %s", got.status, got.body)
	}
	if out, _ := h.run(t, 0, "run", "get", "large"); !strings.Contains(out, "archive:") {
		t.Errorf("the source is no archive: %s", out)
	}
	linked := []string{"run", "create", "linked", "-r", "python", "--handler", "app.hello", "--source", dir}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, stderr := h.run(t, 2, linked...); !strings.Contains(stderr, "link is no regular file") {
		t.Errorf("a link: %q", stderr)
	}
	// A pipe is not waited for.
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr := h.run(t, 2, "run", "create", "pipe", "-r", "python", "--handler", "app.hello", "--source", pipe); !strings.Contains(stderr, "neither a file nor a folder") {
		t.Errorf("a pipe: %q", stderr)
	}
}

// An idle Run ends by itself, and the command says so.
func TestIdleTimeout(t *testing.T) {
	h := up(t)
	h.create(t, "idle", "bash", "hello.greet", examples("bash", "hello"), "--idle-timeout", "1s")
	start := time.Now()
	_, stderr := h.run(t, 1, "run", "wait", "idle", "--for", "end")
	if !strings.Contains(stderr, "IDLE_TIMEOUT") {
		t.Errorf("after %v: %q", time.Since(start), stderr)
	}
	h.call(t, "idle", "{}").wants(t, 404, "RUN_ENDED")
}

func TestCompletion(t *testing.T) {
	h := &house{doors: map[string]string{}}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, _ := h.run(t, 0, "completion", shell); !strings.Contains(out, "__complete") {
			t.Errorf("%s: %q", shell, out)
		}
	}
	for words, want := range map[string]string{"": "up\n", "run cr": "create\n", "run create --hand": "--handler\n", "node ": "drain\n"} {
		out, _ := h.run(t, 0, append([]string{"__complete", "--"}, strings.Split(words, " ")...)...)
		if !strings.Contains(out, want) {
			t.Errorf("%q: %q, want %q in it", words, out, want)
		}
	}
	if out, _ := h.run(t, 0, "version"); !strings.HasPrefix(out, "hearth ") {
		t.Errorf("version: %q", out)
	}
}
