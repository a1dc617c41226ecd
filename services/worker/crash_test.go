package worker_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/sandbox/process"
	"github.com/hearth-run/hearth/services/worker"
	"github.com/hearth-run/hearth/services/worker/internal/hotset"
)

// alone is what the test binary becomes when it is started as a worker.
func alone(folder, python string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p := worker.Process{Listen: "unix:" + filepath.Join(folder, "w.sock"), Config: worker.Default()}
	p.DataDir, p.Python, p.DefaultMemory, p.ScratchBytes, p.Memory = filepath.Join(folder, "data"), python, 128<<20, 16<<20, 64<<30
	if err := p.Run(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// life is one life of a worker process on a folder.
type life struct {
	cmd    *exec.Cmd
	client serverlessconnect.ExecutionServiceClient
	rpc    *connect.Client
	dialer *dial.Dialer
}

func start(t *testing.T, folder string) *life {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TEST_WORKER="+folder, "TEST_PYTHON="+interpreter)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for !strings.Contains(lines.Text(), "worker is prepared") {
		if !lines.Scan() {
			t.Fatalf("the worker did not come up: %v", cmd.Wait())
		}
	}
	go func() {
		for lines.Scan() {
		}
	}()
	l := &life{cmd: cmd, dialer: dial.New(nil)}
	client, err := l.dialer.Streams("unix:" + filepath.Join(folder, "w.sock"))
	if err != nil {
		t.Fatal(err)
	}
	l.client, l.rpc = serverlessconnect.NewExecutionServiceClient(client), client
	return l
}

// processes lists those that run out of a worker's folder, by their command lines.
func processes(t *testing.T, folder string) []string {
	t.Helper()
	var found []string
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(folder)) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

func mounts(t *testing.T, folder string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), folder)
}

// leftovers lists processes, control groups, mounts and short-lived files of a worker.
func leftovers(t *testing.T, folder string) []string {
	t.Helper()
	groups, err := process.Leftovers(filepath.Join(folder, "data", "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "data", "run", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(processes(t, folder), groups, files)
}

// awaitNothing returns when a killed worker has left nothing, though none starts again.
func awaitNothing(t *testing.T, folder string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(leftovers(t, folder)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("left of a killed worker: %q", leftovers(t, folder))
		}
	}
}

// A worker that is killed in the middle of calls: its callers are told, nothing is left
// of it, and the next life works.
func TestKilledWorker(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("walls of this test need root")
	}
	folder, err := os.MkdirTemp("", "hw")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	first := start(t, folder)
	h := &house{client: first.client}
	var begun, ended sync.WaitGroup
	for i := range 5 {
		begun.Add(1)
		ended.Go(func() {
			stream, err := h.client.RequestExecution(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer stream.Close()
			body := []byte(`{"source":"import subprocess,time\ndef f():\n    subprocess.Popen(['sleep','1000'],start_new_session=True)\n    print('up')\n    time.sleep(600)","entry":"f"}`)
			_ = stream.Send(&serverless.WorkerExecutionRequest{RequestId: fmt.Sprint("k", i)})
			_ = stream.Send(&serverless.WorkerExecutionRequest{Payload: body})
			_ = stream.CloseSend()
			_, err = stream.Receive()
			begun.Done()
			if err != nil {
				t.Errorf("call %d: %v", i, err)
				return
			}
			// Which code a cut stream has is the client library's; the router gives it
			// one of ours.
			if _, err = stream.Receive(); err == nil {
				t.Errorf("call %d of a killed worker was answered", i)
			}
		})
	}
	begun.Wait()
	h.zygotes = hearthv1connect.NewZygoteServiceClient(first.rpc)
	h.warm(t, "decimal")
	h.await(t, "containers that stand ready", func(l *hearthv1.ListZygotesResponse) bool {
		return zygoteOf(l, hotset.Root).GetPooled() > 0
	})
	if before := leftovers(t, folder); len(processes(t, folder)) < 5+2+1 || !strings.Contains(strings.Join(before, " "), ".sock") || !strings.Contains(strings.Join(before, " "), "/cgroup/") {
		t.Errorf("calls, zygotes and what stands ready do not run: the check below would see nothing: %q", before)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.cmd.Wait()
	ended.Wait()
	first.dialer.Close()

	awaitNothing(t, folder)

	second := start(t, folder)
	again := &house{client: second.client}
	if a, err := again.execute(t.Context(), header("again"), "def f(): return 1", "f"); err != nil || a.envelope.Value != 1.0 {
		t.Errorf("the next life: %v %+v", err, a)
	}
	second.dialer.Close()
	if err := second.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.cmd.Wait(); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	if left, mounted := processes(t, folder), mounts(t, folder); len(left) > 0 || mounted > 0 {
		t.Errorf("left after the stop: %q, %d mounts", left, mounted)
	}
}
