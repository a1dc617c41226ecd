package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// bigStream asks for the large version of TestStreams.
const bigStream = "E2E_GIB"

// What streams through router and worker is not held by them: in and out pass many
// times what they may grow by. E2E_GIB=1 sends 1 GiB each way.
func TestStreams(t *testing.T) {
	// An executor holds a call's argument and its answer as text and as bytes.
	megabytes, executor := 64, "3221225472"
	if os.Getenv(bigStream) != "" {
		megabytes, executor = 1024, "12884901888"
	}
	a := separateWith(t, plainProgram(t), "--memory", "34359738368")
	client := stream(t, a, "exec-warm", executor, 1)
	idle := map[*part]int64{a.router: residentNow(t, a.router), a.worker: residentNow(t, a.worker)}
	for p := range idle {
		forgetPeak(t, p)
	}
	if client < 1<<20 {
		t.Fatalf("%d bytes came back", client)
	}
	got := stream(t, a, "exec-big", executor, megabytes)
	if got < int64(megabytes)<<20 {
		t.Errorf("%d bytes came back of %d MiB", got, megabytes)
	}
	for p, before := range idle {
		grown := (residentPeak(t, p) - before) >> 20
		t.Logf("%s grew by %d MiB over its %d MiB while %d MiB passed each way", p.cmd.Args[1], grown, before>>20, megabytes)
		if grown > 64 {
			t.Errorf("%s grew by %d MiB over its %d MiB", p.cmd.Args[1], grown, before>>20)
		}
	}
	a.end(t)
}

// plainProgram builds the command without the race detector, which multiplies
// what a process holds.
func plainProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "hearth")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "..").CombinedOutput(); err != nil {
		t.Fatalf("build hearth: %v: %s", err, out)
	}
	return program
}

// stream sends a text of so many MiB through the identity function and returns how
// many bytes came back.
func stream(t *testing.T, a *apart, request, memory string, megabytes int) int64 {
	t.Helper()
	dialer := dial.New(nil)
	defer dialer.Close()
	client, err := dialer.Streams(a.doors["router"])
	if err != nil {
		t.Fatal(err)
	}
	call, err := serverlessconnect.NewProxyServiceClient(client).RequestExecution(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer call.Close()
	var alloc int64
	if _, err := fmt.Sscan(memory, &alloc); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- sendText(call, request, alloc, megabytes) }()
	var total int64
	for {
		res, err := call.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes: %v\n%s", total, err, a.worker.stderr)
		}
		total += int64(len(res.GetPayload()))
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	return total
}

func sendText(call serverlessconnect.ProxyServiceRequestExecutionClientStream, request string, memory int64, megabytes int) error {
	config := &serverless.ExecutionConfig{Budgets: []*serverless.ResourceBudget{{Kind: serverless.ResourceKind_RESOURCE_KIND_MEMORY, Alloc: memory}}}
	if err := call.Send(&serverless.ClientExecutionRequest{RequestId: request, Data: &serverless.ClientExecutionRequest_Config{Config: config}}); err != nil {
		return err
	}
	send := func(b []byte) error {
		return call.Send(&serverless.ClientExecutionRequest{RequestId: request, Data: &serverless.ClientExecutionRequest_Payload{Payload: b}})
	}
	if err := send([]byte(`{"source":"def f(x): return x","entry":"f","kwargs":{},"args":["`)); err != nil {
		return err
	}
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range megabytes {
		if err := send(piece); err != nil {
			return err
		}
	}
	if err := send([]byte(`"]}`)); err != nil {
		return err
	}
	return call.CloseSend()
}

// residentNow and residentPeak are the bytes of memory that a process has, and the
// most that it had since forgetPeak.
func residentNow(t *testing.T, p *part) int64  { return statusBytes(t, p, "VmRSS:") }
func residentPeak(t *testing.T, p *part) int64 { return statusBytes(t, p, "VmHWM:") }

func forgetPeak(t *testing.T, p *part) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

func statusBytes(t *testing.T, p *part, field string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes int64
		if rest, ok := strings.CutPrefix(line, field); ok {
			if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatalf("no %s in %s", field, text)
	return 0
}
