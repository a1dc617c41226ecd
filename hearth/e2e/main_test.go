package e2e

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/hearth/internal/cli"
)

// actAsHearth makes the test's own program be the command: so a subprocess is
// built with the race detector, and nothing has to be built beside it.
const actAsHearth = "E2E_ACT_AS_HEARTH"

func TestMain(m *testing.M) {
	if runtime := os.Getenv(actAsRuntime); runtime != "" {
		listen, workspace, _ := strings.Cut(runtime, ",")
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		os.Exit(serveRuntime(ctx, listen, workspace))
	}
	if os.Getenv(actAsHearth) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		os.Exit(cli.Main(ctx, cli.Shell{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()}, os.Args[1:]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		cleanEnvironment()
		os.Exit(code)
	}))
}

// examples is the folder of the examples.
func examples(parts ...string) string {
	return filepath.Join(append([]string{"..", "..", "examples"}, parts...)...)
}

// house is a `hearth up`, in this process or in one of its own.
type house struct {
	data  string
	doors map[string]string
	// stop ends it as SIGTERM would and returns the exit code.
	stop func() int
	// process is nil for one in this process.
	process *exec.Cmd
	stderr  *safeBuffer
}

// upArgs are those of a house on free ports. Without a word about the router it
// runs no executions, whose worker would make a Python environment first.
func upArgs(data string, args []string) []string {
	base := []string{"up", "--data", data, "--gateway", "127.0.0.1:0", "--control-plane", "127.0.0.1:0"}
	if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--router") }) {
		base = append(base, "--router=")
	}
	return append(base, args...)
}

// up starts a house in this process.
func up(t testing.TB, args ...string) *house {
	t.Helper()
	h := &house{data: t.TempDir(), stderr: &safeBuffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		shell := cli.Shell{In: strings.NewReader(""), Out: in, Err: h.stderr, Environ: os.Environ()}
		code <- cli.Main(ctx, shell, upArgs(h.data, args))
		in.Close()
	}()
	h.stop = sync.OnceValue(func() int {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		return <-code
	})
	t.Cleanup(func() { h.stop() })
	h.doors = readDoors(t, out, h.stderr)
	return h
}

// spawn starts a house as a process of its own, in a data folder.
func spawn(t *testing.T, data string, args ...string) *house {
	t.Helper()
	h := &house{data: data, stderr: &safeBuffer{}}
	h.process = command(upArgs(data, args)...)
	h.process.Stderr = h.stderr
	out, err := h.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.process.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	h.stop = sync.OnceValue(func() int {
		http.DefaultClient.CloseIdleConnections()
		h.process.Process.Signal(syscall.SIGTERM)
		<-drained
		h.process.Wait()
		return h.process.ProcessState.ExitCode()
	})
	t.Cleanup(func() { h.stop() })
	// Also when it ends before it is ready: stop waits for the end of its output.
	defer func() {
		go func() {
			io.Copy(io.Discard, out)
			close(drained)
		}()
	}()
	h.doors = readDoors(t, out, h.stderr)
	return h
}

// command is the command as a process.
func command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), actAsHearth+"=1")
	return cmd
}

// readDoors reads addresses until the last one that `up` prints.
func readDoors(t testing.TB, out io.Reader, stderr *safeBuffer) map[string]string {
	t.Helper()
	doors := map[string]string{}
	scanner := bufio.NewScanner(out)
	for doors["python"] == "" {
		if !scanner.Scan() {
			t.Fatalf("hearth up ended before it was ready: %v\n%s", scanner.Err(), stderr)
		}
		if fields := strings.Fields(scanner.Text()); len(fields) == 2 {
			doors[fields[0]] = fields[1]
		}
	}
	return doors
}

// run runs a client command in this process and returns what it printed.
func (h *house) run(t testing.TB, wantCode int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	shell := cli.Shell{In: strings.NewReader(""), Out: &out, Err: &err, Environ: os.Environ()}
	code := cli.Main(context.Background(), shell, h.lead(args))
	if code != wantCode {
		t.Fatalf("hearth %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, wantCode, &out, &err)
	}
	return out.String(), err.String()
}

// lead adds the address flags that a command takes.
func (h *house) lead(args []string) []string {
	switch args[0] {
	case "run", "node":
		return append(args, "--control-plane", h.doors["controlplane"])
	case "exec", "worker", "session", "zygote":
		return append(args, "--router", h.doors["router"])
	case "invoke":
		return append(args, "--gateway", h.doors["gateway"])
	case "status":
		return append(args, "--control-plane", h.doors["controlplane"], "--gateway", h.doors["gateway"])
	}
	return args
}

// answer is an HTTP response that was read.
type answer struct {
	status int
	header http.Header
	body   string
}

// call posts a payload to a Run.
func (h *house) call(t testing.TB, name, payload string) answer {
	t.Helper()
	return h.post(t, "/v1/namespaces/default/runs/"+name+":invoke", strings.NewReader(payload))
}

func (h *house) post(t testing.TB, path string, body io.Reader) answer {
	t.Helper()
	res, err := http.Post(h.doors["gateway"]+path, "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(data)}
}

// safeBuffer can be read while a process writes to it.
type safeBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// lines reads a program's output line by line.
type lines struct{ scanner *bufio.Scanner }

func newLines(r io.Reader) *lines { return &lines{bufio.NewScanner(r)} }

// until reads on to a line with this in it.
func (l *lines) until(t testing.TB, part string) {
	t.Helper()
	for l.scanner.Scan() {
		if strings.Contains(l.scanner.Text(), part) {
			return
		}
	}
	t.Fatalf("the output ended before %q: %v", part, l.scanner.Err())
}

// rest reads to the end.
func (l *lines) rest() {
	for l.scanner.Scan() {
	}
}
