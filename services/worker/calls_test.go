package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/worker"
)

func header(request string) *serverless.WorkerExecutionRequest {
	return &serverless.WorkerExecutionRequest{RequestId: request}
}

// Whatever a call does, it is answered: as data where the function failed, as a
// typed error where its container did.
func TestAnswers(t *testing.T) {
	h := open(t, nil)
	defer h.stop()
	for _, tc := range []struct {
		name, source, entry string
		excType, message    string
		reason              string
	}{
		{"raises", "def f(): raise KeyError('x')", "f", "KeyError", "'x'", ""},
		{"sys.exit", "import sys\ndef f(): sys.exit(3)", "f", "SystemExit", "3", ""},
		{"interrupt", "def f(): raise KeyboardInterrupt", "f", "KeyboardInterrupt", "", ""},
		{"not JSON", "def f(): return {1, 2}", "f", "TypeError", "not JSON serializable", ""},
		{"NaN", "def f(): return float('nan')", "f", "ValueError", "not JSON compliant", ""},
		{"syntax", "def f(:", "f", "SyntaxError", "", ""},
		{"no function", "x = 1", "f", "BadCall", "no function 'f'", ""},
		{"missing module", "import not_there\ndef f(): pass", "f", "ModuleNotFoundError", "not_there", ""},
		{"os._exit", "import os\ndef f(): os._exit(7)", "f", "", "", "EXECUTOR_DIED"},
		{"segfault", "import ctypes\ndef f(): ctypes.string_at(1)", "f", "", "", "EXECUTOR_DIED"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, err := h.execute(t.Context(), header(t.Name()), tc.source, tc.entry)
			if edge.Reason(err) != tc.reason {
				t.Fatalf("error %v, want reason %q", err, tc.reason)
			}
			if tc.reason != "" {
				return
			}
			if a.envelope.OK || a.envelope.ExcType != tc.excType || !strings.Contains(a.envelope.Message, tc.message) {
				t.Errorf("envelope %+v", a.envelope)
			}
		})
	}
}

func TestHeaderIsChecked(t *testing.T) {
	h := open(t, nil)
	defer h.stop()
	container := "c1"
	for name, hd := range map[string]*serverless.WorkerExecutionRequest{
		"no request_id":             {},
		"payload in the header":     {RequestId: "r", Payload: []byte("x")},
		"another worker":            {RequestId: "r", WorkerId: "w2"},
		"container without session": {RequestId: "r", ContainerId: &container},
		"budget too small":          {RequestId: "r", Budgets: []*serverless.ResourceBudget{{Kind: serverless.ResourceKind_RESOURCE_KIND_MEMORY, Alloc: 1}}},
		"max below alloc":           {RequestId: "r", Budgets: []*serverless.ResourceBudget{{Kind: serverless.ResourceKind_RESOURCE_KIND_MEMORY, Alloc: 1 << 30, Max: 1}}},
	} {
		if _, err := h.send(t.Context(), hd, []byte("{}")); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.send(t.Context(), &serverless.WorkerExecutionRequest{RequestId: "r", SessionId: "s", ContainerId: &container}); edge.Reason(err) != worker.ReasonContainerGone {
		t.Errorf("a container that is not there: %v", err)
	}
}

// A line reaches the caller while the function runs, and the envelope has it too.
func TestLogsAreLive(t *testing.T) {
	h := open(t, nil)
	defer h.stop()
	stream, err := h.client.RequestExecution(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	body := []byte(`{"source":"import os,sys\ndef f():\n    os.write(1, b'one\\n')\n    print('two', file=sys.stderr)\n    while not os.path.exists('/tmp/go'): pass\n    return 1\ndef g(): open('/tmp/go','w')","entry":"f"}`)
	if err := stream.Send(header("live")); err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&serverless.WorkerExecutionRequest{Payload: body}); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	logs := ""
	for logs != "one\ntwo\n" { // the function cannot end: nobody makes its file
		res, err := stream.Receive()
		if err != nil {
			t.Fatalf("after %q: %v", logs, err)
		}
		logs += res.GetLogs()
	}
}

func TestOutputIsCut(t *testing.T) {
	h := open(t, func(c *worker.Config) { c.OutputLimit = 1000 })
	defer h.stop()
	a, err := h.execute(t.Context(), header("flood"), "import os\ndef f():\n    for _ in range(3000): os.write(2, b'x' * 1000)\n    return 1", "f")
	if err != nil {
		t.Fatal(err)
	}
	if !a.envelope.OK || !strings.Contains(a.logs, "[output cut: 2999000 bytes") || len(a.logs) > 1200 || strings.Join(a.envelope.Output, "") != a.logs {
		t.Errorf("logs of %d bytes: …%s", len(a.logs), a.logs[max(0, len(a.logs)-100):])
	}
}

// What a call of a session does to its standard streams is its own affair.
func TestSpoiledStreams(t *testing.T) {
	h := open(t, nil)
	defer h.stop()
	const hello = "import os, sys\ndef f():\n    print('out')\n    print('err', file=sys.stderr)\n    os.write(1, b'raw\\n')\n    return 1"
	for name, spoil := range map[string]string{
		"closes the descriptors": "os.close(1); os.close(2)",
		"closes the streams":     "sys.stdout.close(); sys.stderr.close()",
		"replaces the streams":   "sys.stdout = sys.stderr = open('/dev/null', 'w')",
		"puts anything there":    "sys.stdout = 7; del sys.stderr",
		"sends them elsewhere":   "os.dup2(os.open('/dev/null', os.O_WRONLY), 1); os.dup2(1, 2)",
		"reads without waiting":  "os.set_blocking(1, False)",
	} {
		t.Run(name, func(t *testing.T) {
			call := header("spoil " + name)
			call.SessionId = name
			a, err := h.execute(t.Context(), call, "import os, sys\ndef f(): "+spoil, "f")
			if err != nil || !a.envelope.OK {
				t.Fatalf("%+v, %v", a, err)
			}
			call = header("hello " + name)
			call.SessionId, call.ContainerId = name, &a.container
			a, err = h.execute(t.Context(), call, hello, "f")
			if err != nil || !a.envelope.OK || a.logs != "out\nerr\nraw\n" || strings.Join(a.envelope.Output, "") != a.logs {
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

func TestSameRequestTwice(t *testing.T) {
	h := open(t, nil)
	defer h.stop()
	ctx, cancel := context.WithCancel(t.Context())
	first, err := h.client.RequestExecution(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Send(header("same")); err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"source":"import time\ndef f():\n    print('up')\n    time.sleep(600)","entry":"f"}`)
	if err := first.Send(&serverless.WorkerExecutionRequest{Payload: body}); err != nil {
		t.Fatal(err)
	}
	if err := first.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Receive(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.execute(t.Context(), header("same"), "def f(): pass", "f"); connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Errorf("the second one: %v", err)
	}
	cancel()
	for _, err = first.Receive(); err == nil; _, err = first.Receive() {
	}
	if connect.CodeOf(err) != connect.CodeCanceled && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: %v", err)
	}
}

func TestDeadline(t *testing.T) {
	h := open(t, nil)
	defer h.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := h.execute(ctx, header("late"), "import time\ndef f(): time.sleep(600)", "f")
	if connect.CodeOf(err) != connect.CodeDeadlineExceeded && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func memory(alloc, most int64) []*serverless.ResourceBudget {
	return []*serverless.ResourceBudget{{Kind: serverless.ResourceKind_RESOURCE_KIND_MEMORY, Alloc: alloc, Max: most}}
}

const eat = "def f(mb):\n    b = []\n    for _ in range(mb): b.append(b'x' * (1 << 20))\n    return len(b)\n"

// The kernel says that it was the memory, and a budget that may grow does.
func TestMemory(t *testing.T) {
	h := open(t, nil)
	defer h.stop()
	tight := header("tight")
	tight.Budgets = memory(64<<20, 64<<20)
	if _, err := h.execute(t.Context(), tight, eat, "f", 200); edge.Reason(err) != "OUT_OF_MEMORY" || connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("out of memory: %v", err)
	}
	wide := header("wide")
	wide.Budgets = memory(64<<20, 1<<30)
	a, err := h.execute(t.Context(), wide, "import time\n"+eat+"def g(mb):\n    n = 0\n    for _ in range(mb // 4):\n        n += f(1)\n    return f(mb)\n", "f", 100)
	if err != nil || a.envelope.Value != 100.0 {
		t.Errorf("a budget that may grow: %v %+v", err, a)
	}
}

func TestFull(t *testing.T) {
	h := open(t, func(c *worker.Config) { c.Memory = 300 << 20 })
	defer h.stop()
	big := header("big")
	big.Budgets = memory(512<<20, 0)
	if _, err := h.execute(t.Context(), big, "def f(): pass", "f"); edge.Reason(err) != worker.ReasonFull {
		t.Errorf("a call that cannot fit: %v", err)
	}
}

// A call that was given up while its container started leaves a place that the next
// one waits for.
func TestGivenUpWhileStarting(t *testing.T) {
	h := open(t, func(cfg *worker.Config) { cfg.MaxContainers, cfg.ZygoteMemory = 1, 0 })
	defer h.stop()
	for i := range 5 {
		ctx, giveUp := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := h.execute(ctx, &serverless.WorkerExecutionRequest{RequestId: fmt.Sprint("given-up-", i)}, "def f(): pass", "f")
			ended <- err
		}()
		for len(h.worker.Containers()) == 0 {
			time.Sleep(time.Millisecond) // nothing tells that a container starts
		}
		giveUp()
		if err := <-ended; err == nil {
			t.Fatal("a call that was given up has ended well")
		}
		if _, err := h.execute(t.Context(), &serverless.WorkerExecutionRequest{RequestId: fmt.Sprint("next-", i)}, "def f(): pass", "f"); err != nil {
			t.Fatalf("the next call: %v", err)
		}
	}
}

// A hundred first calls at once, on whatever cores there are.
func TestManyAtOnce(t *testing.T) {
	h := open(t, func(c *worker.Config) { c.Memory = 64 << 30; c.StartTimeout = 2 * time.Minute })
	defer h.stop()
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			a, err := h.execute(t.Context(), header(fmt.Sprint("many-", i)), "def f(i): return i", "f", i)
			if err != nil || a.envelope.Value != float64(i) {
				t.Errorf("call %d: %v %+v", i, err, a)
			}
		})
	}
	wg.Wait()
}

// The stop lets a call finish and leaves nothing.
func TestDrain(t *testing.T) {
	h := open(t, nil)
	begun, result := make(chan struct{}), make(chan error, 1)
	stream, err := h.client.RequestExecution(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	go func() {
		body := []byte(`{"source":"import time\ndef f():\n    print('up')\n    time.sleep(1)\n    return 5","entry":"f"}`)
		_ = stream.Send(header("drain"))
		_ = stream.Send(&serverless.WorkerExecutionRequest{Payload: body})
		_ = stream.CloseSend()
		var payload bytes.Buffer
		for {
			res, err := stream.Receive()
			if err != nil {
				if !strings.Contains(payload.String(), `"value":5`) {
					result <- fmt.Errorf("answer %q: %w", payload.String(), err)
				}
				close(result)
				return
			}
			if res.GetLogs() != "" {
				close(begun)
			}
			payload.Write(res.GetPayload())
		}
	}()
	<-begun
	h.stop()
	if err := <-result; err != nil {
		t.Error(err)
	}
	if _, err := h.execute(t.Context(), header("after"), "def f(): pass", "f"); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("after the stop: %v", err)
	}
}

// Clients that pickle: what they send and get is the same as from other workers.
func TestPickles(t *testing.T) {
	h := open(t, nil)
	defer h.stop()
	for _, tc := range []struct{ name, call, want string }{
		{"value", "{'func': lambda a, b=0: (a, b), 'args': (1,), 'kwargs': {'b': {2}}}", "(True, (1, {2}), [])"},
		{"raises", "{'func': lambda: 1/0, 'args': (), 'kwargs': {}}", "(False, 'ZeroDivisionError', 'division by zero')"},
		{"no dict", "[1]", "(False, 'BadCall', 'the payload is a pickled list, not a dict')"},
		{"missing key", "{'func': len}", "(False, 'BadCall', 'the payload lacks args, kwargs')"},
		{"unpicklable", "{'func': lambda: (i for i in ()), 'args': (), 'kwargs': {}}", "(False, 'TypeError', \"cannot pickle 'generator' object\")"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := pickle(t, tc.call)
			a, err := h.send(t.Context(), header(t.Name()), body[:len(body)/2], body[len(body)/2:])
			if err != nil {
				t.Fatal(err)
			}
			if got := unpickle(t, a.payload); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	a, err := h.send(t.Context(), header("garbage"), []byte("garbage"))
	if err != nil || !bytes.Contains(a.payload, []byte("BadCall")) {
		t.Errorf("garbage: %v %q", err, a.payload)
	}
}

// pickle returns an expression as cloudpickle carries it.
func pickle(t *testing.T, expression string) []byte {
	t.Helper()
	out, err := exec.Command(interpreter, "-c", "import cloudpickle, sys\nsys.stdout.buffer.write(cloudpickle.dumps("+expression+"))").Output()
	if err != nil {
		t.Fatalf("pickle: %v", err)
	}
	return out
}

// unpickle shows an envelope.
func unpickle(t *testing.T, payload []byte) string {
	t.Helper()
	show := exec.Command(interpreter, "-c", "import cloudpickle, sys\ne = cloudpickle.load(sys.stdin.buffer)\nprint((True, e['value'], e['output']) if e['ok'] else (False, e['exc_type'], e['message']))")
	show.Stdin = bytes.NewReader(payload)
	out, err := show.CombinedOutput()
	if err != nil {
		t.Errorf("unpickle: %v", err)
	}
	return strings.TrimSpace(string(out))
}
