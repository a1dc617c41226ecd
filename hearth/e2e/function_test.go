package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// source writes one file to a folder of its own and returns the folder.
func source(t testing.TB, name, code string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// create makes a Run and waits until it is ready.
func (h *house) create(t testing.TB, name, runtime, handler, source string, more ...string) {
	t.Helper()
	h.run(t, 0, append([]string{"run", "create", name, "--runtime", runtime, "--handler", handler, "--source", source, "--wait"}, more...)...)
}

// wants fails the test unless an answer is what it should be.
func (got answer) wants(t testing.TB, status int, reason string) {
	t.Helper()
	if got.status != status || reason != "" && got.reason() != reason {
		t.Errorf("%d %s, want %d %s", got.status, got.body, status, reason)
	}
}

// reason is the reason of an error, from its details.
func (got answer) reason() string {
	var fault struct {
		Details []struct {
			Debug struct {
				Reason string `json:"reason"`
			} `json:"debug"`
		} `json:"details"`
	}
	if json.Unmarshal([]byte(got.body), &fault) != nil || len(fault.Details) == 0 {
		return "none"
	}
	return fault.Details[0].Debug.Reason
}

// The two calls that a newcomer makes.
func TestQuickStart(t *testing.T) {
	h := up(t)
	h.run(t, 0, "run", "create", "hello", "--runtime", "python", "--handler", "app.hello", "--source", examples("python", "hello"), "--wait")
	got := h.call(t, "hello", `{"name":"Ada"}`)
	if got.status != 200 || got.body != `{"greeting":"Hello, Ada!"}` || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s %v", got.status, got.body, got.header)
	}
	res, err := http.Post(h.doors["controlplane"]+"/hearth.v1.RunService/ListRuns", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	list, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != 200 || !strings.Contains(string(list), `"hello"`) {
		t.Errorf("ListRuns: %d %s", res.StatusCode, list)
	}
	if out, _ := h.run(t, 0, "invoke", "hello", "-d", `{"name":"Bob"}`); out != `{"greeting":"Hello, Bob!"}` {
		t.Errorf("invoke printed %q", out)
	}
}

// A handler in the middle of its work, held by two FIFOs: it opens started, and
// goes on once go is written to.
const held = `import os

def wait(event):
    here = os.environ["HELD"]
    with open(here + "/started", "w"):
        pass
    with open(here + "/go") as go:
        return {"got": go.read()}
`

func TestOneCallAtATime(t *testing.T) {
	h := up(t)
	dir := t.TempDir()
	for _, name := range []string{"started", "go"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.create(t, "held", "python", "app.wait", source(t, "app.py", held), "--env", "HELD="+dir)
	first := make(chan answer)
	go func() { first <- h.call(t, "held", "{}") }()
	started, err := os.Open(filepath.Join(dir, "started"))
	if err != nil {
		t.Fatal(err)
	}
	started.Close()
	second := h.call(t, "held", "{}")
	second.wants(t, 429, "INVOCATION_ACTIVE")
	if second.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("on"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-first; got.status != 200 || !strings.Contains(got.body, "on") {
		t.Errorf("the first call: %d %s", got.status, got.body)
	}
}

func TestRunsThatCannotBeCalled(t *testing.T) {
	h := up(t)
	h.call(t, "nobody", "{}").wants(t, 404, "RUN_NOT_FOUND")
	h.create(t, "gone", "python", "app.hello", examples("python", "hello"))
	h.run(t, 0, "run", "cancel", "gone", "--wait")
	h.call(t, "gone", "{}").wants(t, 404, "RUN_ENDED")
	h.run(t, 0, "run", "create", "waits", "--runtime", "cobol", "--handler", "a.b", "--source", examples("python", "hello"))
	waits := h.call(t, "waits", "{}")
	waits.wants(t, 503, "RUN_NOT_READY")
	if waits.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	h.run(t, 0, "run", "delete", "gone", "--wait")
	h.call(t, "gone", "{}").wants(t, 404, "RUN_NOT_FOUND")
}

const echoPython = "def echo(event):\n    return event\n"

// Bash has no JSON of its own: the payload goes back as it came.
const echoBash = "echo() {\n    printf '%s' \"$1\"\n}\n"

func TestPayloads(t *testing.T) {
	h := up(t)
	h.create(t, "python", "python", "app.echo", source(t, "app.py", echoPython))
	h.create(t, "bash", "bash", "app.echo", source(t, "app.sh", echoBash))
	whole := `"` + strings.Repeat("0123456789abcdef", 1<<16)[2:] + `"`
	if len(whole) != 1<<20 {
		t.Fatal(len(whole))
	}
	for _, name := range []string{"python", "bash"} {
		if got := h.call(t, name, whole); got.status != 200 || got.body != whole {
			t.Errorf("%s: %d, %d bytes back", name, got.status, len(got.body))
		}
		h.call(t, name, whole+" ").wants(t, 400, "INVALID_ARGUMENT")
		// A reader that would never end shows that the end is not waited for.
		path := "/v1/namespaces/default/runs/" + name + ":invoke"
		h.post(t, path, io.MultiReader(strings.NewReader(whole), endless{})).wants(t, 400, "INVALID_ARGUMENT")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A payload is data in every language, whatever it looks like.
func TestPayloadIsNoCode(t *testing.T) {
	h := up(t)
	h.create(t, "hello", "bash", "hello.greet", examples("bash", "hello"))
	h.create(t, "echo", "python", "app.echo", source(t, "app.py", echoPython))
	for _, payload := range []string{`{"v":"$(touch pwned)"}`, "{\"v\":\"`touch pwned`\"}", `{"v":"'; touch pwned; '"}`} {
		if got := h.call(t, "hello", payload); got.body != "Hello from Bash! You sent: "+payload+"\n" {
			t.Errorf("%d %q", got.status, got.body)
		}
		h.call(t, "echo", payload).wants(t, 200, "")
	}
	err := filepath.WalkDir(h.data, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == "pwned" {
			return fmt.Errorf("a payload made %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("pwned"); err == nil {
		t.Error("a payload made a file in the server's folder")
	}
}

// A handler that raises is the function's fault, told whole, and changes nothing.
func TestHandlerRaises(t *testing.T) {
	h := up(t)
	h.create(t, "fail", "python", "app.divide", examples("python", "fail"))
	got := h.call(t, "fail", `{"a":1,"b":0}`)
	got.wants(t, 502, "HANDLER_ERROR")
	for _, part := range []string{"ZeroDivisionError", "Traceback", "app.py"} {
		if !strings.Contains(got.body, part) {
			t.Errorf("no %s in %s", part, got.body)
		}
	}
	if out, _ := h.run(t, 0, "run", "get", "fail", "-o", "json"); !strings.Contains(out, "RUN_PHASE_READY") {
		t.Errorf("the Run is not ready any more: %s", out)
	}
	h.call(t, "fail", `{"a":1,"b":4}`).wants(t, 200, "")
	_, stderr := h.run(t, 1, "invoke", "fail", "-d", `{"a":1,"b":0}`)
	if !strings.Contains(stderr, "HANDLER_ERROR") || !strings.Contains(stderr, "Traceback") {
		t.Errorf("invoke said %q", stderr)
	}
}

// A call that takes too long ends, for real, and the next one works.
func TestTimeout(t *testing.T) {
	h := up(t)
	h.create(t, "slow", "python", "app.slow", source(t, "app.py", "import time\n\ndef slow(event):\n    time.sleep(event)\n    return event\n"))
	_, stderr := h.run(t, 124, "invoke", "slow", "-d", "3600", "--timeout", "200ms")
	if !strings.Contains(stderr, "deadline") && !strings.Contains(stderr, "DEADLINE") {
		t.Errorf("invoke said %q", stderr)
	}
	h.call(t, "slow", "0").wants(t, 200, "")
}
