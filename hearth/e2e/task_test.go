package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hearth-run/hearth/hearth/internal/cli"
)

// task runs `hearth run create --task`, whose command ends the flags.
func (h *house) task(t *testing.T, want int, name string, flags []string, command ...string) (stdout, stderr string) {
	t.Helper()
	args := append([]string{"run", "create", name, "--task", "--control-plane", h.doors["controlplane"]}, flags...)
	args = append(append(args, "--"), command...)
	var out, errs bytes.Buffer
	shell := cli.Shell{In: strings.NewReader(""), Out: &out, Err: &errs, Environ: os.Environ()}
	if code := cli.Main(context.Background(), shell, args); code != want {
		t.Fatalf("hearth %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, &out, &errs)
	}
	return out.String(), errs.String()
}

// A task's exit code is that of the wait; its output and outputs are in its status.
func TestTasks(t *testing.T) {
	h := up(t)
	bash := []string{"--runtime", "bash"}
	script := "echo said; echo wrong >&2; echo answer=42 >> \"$HEARTH_OUTPUTS\"; exit 3"
	h.task(t, 0, "fails", bash, script)
	_, stderr := h.run(t, 3, "run", "wait", "fails")
	if !strings.Contains(stderr, "EXIT_NONZERO") || !strings.Contains(stderr, "exit code 3") {
		t.Errorf("the wait said %q", stderr)
	}
	out, _ := h.run(t, 0, "run", "get", "fails")
	flat := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"Phase: FAILED", "Exit code: 3", "Outputs: answer=42", "Standard output: said", "Standard error: wrong"} {
		if !strings.Contains(flat, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	var run struct {
		Status struct {
			ExitCode int
			Stdout   string
			Outputs  map[string]string
		}
	}
	out, _ = h.run(t, 0, "run", "get", "fails", "-o", "json")
	if err := json.Unmarshal([]byte(out), &run); err != nil || run.Status.ExitCode != 3 || run.Status.Stdout != "said\n" || run.Status.Outputs["answer"] != "42" {
		t.Errorf("%v: %s", err, out)
	}

	// What a shell took apart arrives as it was.
	h.task(t, 0, "words", append(bash, "--wait", "-o", "name"), "printf", "%s|", "a b", "it's", "")
	if out, _ := h.run(t, 0, "run", "get", "words"); !strings.Contains(out, "a b|it's||") {
		t.Errorf("words: %s", out)
	}
	h.task(t, 7, "shell", append(bash, "--wait"), "bash", "-c", "exit 7")
	h.run(t, 7, "run", "wait", "shell")

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "job.py"), []byte("import sys\nprint(sys.argv[1:])\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.task(t, 0, "file", []string{"--runtime", "python", "--source", dir, "--entrypoint", "job.py", "--wait"}, "one", "two")
	if out, _ := h.run(t, 0, "run", "get", "file"); !strings.Contains(out, "['one', 'two']") {
		t.Errorf("a file of the source: %s", out)
	}

	h.task(t, 0, "long", bash, "echo begun; echo oops >&2; sleep 600")
	h.run(t, 124, "run", "wait", "long", "--timeout", "100ms")
	follow := command("logs", "long", "-f", "--gateway", h.doors["gateway"])
	pipe, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	lines := newLines(pipe)
	lines.until(t, "begun") // while it runs
	h.run(t, 0, "run", "cancel", "long", "--wait")
	h.run(t, 1, "run", "wait", "long")
	if err := follow.Wait(); err != nil {
		t.Errorf("following a task to its end: %v", err)
	}
	if out, _ := h.run(t, 0, "logs", "long", "--gateway", h.doors["gateway"]); !strings.Contains(out, "begun") || !strings.Contains(out, "oops") {
		t.Errorf("logs of a task that has ended: %q", out)
	}
	h.task(t, 2, "both", append(bash, "--handler", "a.b"), "true")
	h.task(t, 2, "nothing", bash)
}

// A task that failed is run again as often as it may be, for the reasons that were
// named; one that has ended is removed when its time is over.
func TestTaskRetries(t *testing.T) {
	h := up(t)
	witness := t.TempDir() + "/runs"
	flags := func(more ...string) []string {
		return append([]string{"--runtime", "bash", "--env", "WITNESS=" + witness, "--max-attempts", "2", "--wait"}, more...)
	}
	again := `echo ran >>"$WITNESS"; [ "$(wc -l <"$WITNESS")" -gt 1 ]`
	h.task(t, 0, "again", flags(), again)
	if out, _ := h.run(t, 0, "run", "get", "again"); !strings.Contains(strings.Join(strings.Fields(out), " "), "Attempt: 2") {
		t.Errorf("after two attempts: %s", out)
	}
	if err := os.Remove(witness); err != nil {
		t.Fatal(err)
	}
	h.task(t, 1, "never", flags("--retry-on", "NODE_LOST"), again)
	if runs, err := os.ReadFile(witness); err != nil || string(runs) != "ran\n" {
		t.Errorf("for a reason that was not named it ran %q %v", runs, err)
	}
	h.task(t, 2, "odd", flags("--retry-on", "BAD_LUCK"), "true")
	h.task(t, 0, "brief", []string{"--runtime", "bash", "--ttl", "10ms"}, "true")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		out, _ := h.run(t, 0, "run", "list", "-o", "name")
		if !strings.Contains(out, "brief") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there: %s", out)
		}
	}
}

// A task whose house was killed is lost: what runs again is its next attempt, and
// none where the user has left the reason out.
func TestTaskOfAKilledHouse(t *testing.T) {
	data, folder := t.TempDir(), t.TempDir()
	first := spawn(t, data)
	for name, flags := range map[string][]string{"once": {"--runtime", "bash", "--retry-on", "EXIT_NONZERO"}, "twice": {"--runtime", "bash"}} {
		witness := filepath.Join(folder, name)
		first.task(t, 0, name, flags, `echo ran >>`+witness+`; [ "$(wc -l <`+witness+`)" -gt 1 ] || exec sleep 600`)
		for ran(witness) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if err := first.process.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	first.stop()
	again := spawn(t, data)
	if _, stderr := again.run(t, 1, "run", "wait", "once", "--timeout", "30s"); !strings.Contains(stderr, "EXECUTION_LOST") {
		t.Errorf("a lost task: %s", stderr)
	}
	if out, _ := again.run(t, 0, "run", "wait", "twice", "--timeout", "30s", "-o", "json"); !strings.Contains(out, `"attempt": 2`) {
		t.Errorf("after the second life: %s", out)
	}
	if once, twice := ran(filepath.Join(folder, "once")), ran(filepath.Join(folder, "twice")); once != 1 || twice != 2 {
		t.Errorf("ran %d and %d times, want 1 and 2", once, twice)
	}
}

// ran is how many lines a witness has.
func ran(witness string) int {
	text, _ := os.ReadFile(witness)
	return strings.Count(string(text), "\n")
}
