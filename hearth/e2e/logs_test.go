package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// chatty writes its payload to the log and answers something else.
const chatty = "talk() {\n    echo \"heard $1\" >&2\n    echo done\n}\n"

// What a function writes can be read while it runs, by invocation, and after it.
func TestLogs(t *testing.T) {
	h := up(t)
	file := filepath.Join(t.TempDir(), "app.sh")
	if err := os.WriteFile(file, []byte(chatty), 0o600); err != nil {
		t.Fatal(err)
	}
	h.create(t, "talks", "bash", "app.talk", file)
	follow := command("logs", "talks", "-f", "--gateway", h.doors["gateway"])
	pipe, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	lines := newLines(pipe)
	h.run(t, 0, "invoke", "talks", "-d", `"one"`, "--invocation-id", "first")
	lines.until(t, `stderr heard "one"`)
	h.run(t, 0, "invoke", "talks", "-d", `"two"`, "--invocation-id", "second")
	lines.until(t, `stderr heard "two"`)

	logs := func(code int, args ...string) (string, string) {
		t.Helper()
		return h.run(t, code, append([]string{"logs", "talks", "--gateway", h.doors["gateway"]}, args...)...)
	}
	if out, _ := logs(0, "--invocation", "second"); !strings.Contains(out, `heard "two"`) || strings.Contains(out, "one") {
		t.Errorf("of one invocation: %q", out)
	}
	if out, _ := logs(0, "--since", "1ns"); out != "" {
		t.Errorf("since now: %q", out)
	}
	out, _ := logs(0, "-o", "json", "--since", "1h")
	var entry struct{ InvocationID, Stream, Message, Time string }
	first, _, _ := strings.Cut(out, "\n")
	if err := json.Unmarshal([]byte(first), &entry); err != nil || entry.InvocationID != "first" || entry.Stream != "stderr" || entry.Message != `heard "one"` || entry.Time == "" {
		t.Errorf("json: %v %q", err, out)
	}

	// Following ends with the Run, whose log outlives it.
	h.run(t, 0, "run", "cancel", "talks", "--wait")
	lines.rest()
	if err := follow.Wait(); err != nil {
		t.Errorf("following a Run to its end: %v", err)
	}
	if out, _ := logs(0); !strings.Contains(out, `heard "two"`) {
		t.Errorf("after the end: %q", out)
	}
	h.run(t, 0, "run", "delete", "talks", "--wait")
	if _, stderr := logs(1); !strings.Contains(stderr, "RUN_NOT_FOUND") {
		t.Errorf("of a Run that was deleted: %q", stderr)
	}
}
