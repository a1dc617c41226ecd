package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/serverless"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/worker"
	"github.com/hearth-run/hearth/services/worker/internal/hotset"
)

const (
	cold   = serverless.ContainerStart_CONTAINER_START_COLD
	forked = serverless.ContainerStart_CONTAINER_START_CHECKPOINT
	pooled = serverless.ContainerStart_CONTAINER_START_POOLED
	again  = serverless.ContainerStart_CONTAINER_START_SESSION
)

// nursery is a worker that forks when a call comes: what a call gets is certain.
func nursery(t *testing.T, change ...func(*worker.Config)) *house {
	t.Helper()
	return open(t, func(c *worker.Config) {
		c.ZygotePool, c.Memory, c.StartTimeout = 0, 64<<30, time.Minute
		for _, f := range change {
			f(c)
		}
	})
}

// warm grows a zygote and waits until it stands.
func (h *house) warm(t *testing.T, modules ...string) *hearthv1.Zygote {
	t.Helper()
	res, err := h.zygotes.WarmZygote(t.Context(), &hearthv1.WarmZygoteRequest{Modules: modules})
	if err != nil {
		t.Fatal(err)
	}
	return res.GetZygotes()[0]
}

func (h *house) list(t *testing.T) *hearthv1.ListZygotesResponse {
	t.Helper()
	res, err := h.zygotes.ListZygotes(t.Context(), &hearthv1.ListZygotesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// await asks until what the worker holds is as wanted: it happens in the background,
// and nothing tells.
func (h *house) await(t *testing.T, what string, is func(*hearthv1.ListZygotesResponse) bool) {
	t.Helper()
	for t.Context().Err() == nil {
		if is(h.list(t)) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s never came: %v", what, h.list(t))
}

// state is that of the zygote of an id, and the zygote.
func zygoteOf(list *hearthv1.ListZygotesResponse, id string) *hearthv1.Zygote {
	for _, z := range list.GetZygotes() {
		if z.GetZygoteId() == id {
			return z
		}
	}
	return nil
}

func live(list *hearthv1.ListZygotesResponse, id string) bool {
	return zygoteOf(list, id).GetState() == hearthv1.ZygoteState_ZYGOTE_STATE_LIVE
}

func importing(request string, modules ...string) *serverless.WorkerExecutionRequest {
	return &serverless.WorkerExecutionRequest{RequestId: request, Resources: modules}
}

const sees = "import sys\ndef f(*names): return [n in sys.modules for n in names]\n"

// The answer says how its container came to be, and from what; the counters agree.
func TestStartsAreTold(t *testing.T) {
	h := nursery(t)
	defer h.stop()
	id := h.warm(t, "decimal").GetZygoteId()
	if id != hotset.Name([]string{"decimal"}) {
		t.Errorf("it is called %s", id)
	}
	unoptimized := importing("r", "decimal")
	unoptimized.DisableOptimizedExecution = true
	named, missing := header("r"), importing("r", "decimal")
	named.CheckpointId, missing.CheckpointId = id, "z-none"
	for _, tc := range []struct {
		name   string
		header *serverless.WorkerExecutionRequest
		start  serverless.ContainerStart
		from   string
		warm   bool
	}{
		{"no imports", header("r"), forked, hotset.Root, false},
		{"imports that are warm", importing("r", "decimal"), forked, id, true},
		{"more imports than are warm", importing("r", "_not_there", "decimal", "sys"), forked, id, true},
		{"imports that are not warm", importing("r", "zipapp"), forked, hotset.Root, false},
		{"unoptimized", unoptimized, cold, "", false},
		{"named", named, forked, id, true},
		{"named and not there", missing, cold, "", false},
	} {
		tc.header.RequestId = tc.name
		a, err := h.execute(t.Context(), tc.header, sees, "f", "decimal")
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if a.start != tc.start || a.checkpoint != tc.from || !slices.Equal(a.envelope.Value.([]any), []any{tc.warm}) {
			t.Errorf("%s: %v from %q, decimal there: %v", tc.name, a.start, a.checkpoint, a.envelope.Value)
		}
	}
	counts := h.list(t).GetUsage()[0].GetStarts()
	if counts.GetCold() != 2 || counts.GetCheckpoint() != 5 || counts.GetPooled() != 0 || counts.GetSession() != 0 {
		t.Errorf("counted %v", counts)
	}
	if z := zygoteOf(h.list(t), id); z.GetForked() != 3 || z.GetFoundReady() != 0 {
		t.Errorf("counted %v", z)
	}
}

func TestSessionFromAZygote(t *testing.T) {
	h := nursery(t)
	defer h.stop()
	h.warm(t, "decimal")
	const source = "n = 0\ndef count():\n    global n\n    n += 1\n    return n\n"
	first := importing("r1", "decimal")
	first.SessionId = "s"
	a, err := h.execute(t.Context(), first, source, "count")
	if err != nil {
		t.Fatal(err)
	}
	b, err := h.execute(t.Context(), &serverless.WorkerExecutionRequest{RequestId: "r2", SessionId: "s", ContainerId: &a.container}, source, "count")
	if err != nil {
		t.Fatal(err)
	}
	if a.start != forked || b.start != again || b.checkpoint != a.checkpoint || b.envelope.Value != 2.0 {
		t.Errorf("%v %v, then %v %v: %v", a.start, a.checkpoint, b.start, b.checkpoint, b.envelope.Value)
	}
}

// What calls import is learned: the second call of a set has it grown.
func TestImportsAreLearned(t *testing.T) {
	h := nursery(t)
	defer h.stop()
	h.await(t, "the root", func(l *hearthv1.ListZygotesResponse) bool { return live(l, hotset.Root) })
	for i := range 2 {
		if _, err := h.execute(t.Context(), importing(fmt.Sprint("r", i), "zipapp", "json"), sees, "f", "zipapp"); err != nil {
			t.Fatal(err)
		}
	}
	id := hotset.Name([]string{"zipapp"}) // json is there anyway
	h.await(t, "the zygote", func(l *hearthv1.ListZygotesResponse) bool { return live(l, id) })
	a, err := h.execute(t.Context(), importing("r3", "zipapp"), sees, "f", "zipapp")
	if err != nil || a.checkpoint != id || !slices.Equal(a.envelope.Value.([]any), []any{true}) {
		t.Errorf("%v: %+v", err, a)
	}
}

// Containers that stand ready are found by calls, get the calls' own memory limit, and
// count for nothing until then.
func TestPool(t *testing.T) {
	h := nursery(t, func(c *worker.Config) {
		c.ZygotePool, c.MaxContainers, c.Memory = 2, 1, 200<<20
		c.DefaultMemory = 150 << 20
	})
	defer h.stop()
	h.await(t, "the pool", func(l *hearthv1.ListZygotesResponse) bool { return zygoteOf(l, hotset.Root).GetPooled() >= 1 })
	if u, containers := h.worker.Utilization(); u.GetExecutorCount() != 0 || u.GetMemUsed() != 0 || len(containers) != 0 {
		t.Errorf("what stands ready counts: %v", u)
	}
	small := header("small")
	small.Budgets = memory(64<<20, 64<<20)
	a, err := h.execute(t.Context(), small, "def f(): return 1", "f")
	if err != nil || a.start != pooled || a.checkpoint != hotset.Root {
		t.Fatalf("%v: %v from %q", err, a.start, a.checkpoint)
	}
	h.await(t, "the pool again", func(l *hearthv1.ListZygotesResponse) bool { return zygoteOf(l, hotset.Root).GetPooled() >= 1 })
	greedy := header("greedy")
	greedy.Budgets = memory(64<<20, 64<<20)
	if a, err := h.execute(t.Context(), greedy, eat, "f", 120); edge.Reason(err) != "OUT_OF_MEMORY" {
		t.Errorf("120 MiB in 64: %v %+v", err, a)
	}
	if c := h.list(t).GetUsage()[0].GetStarts(); c.GetPooled() == 0 {
		t.Errorf("counted %v", c)
	}
}

// A call whose packages change what a zygote has loaded starts cold, and sees its own.
func TestPackagesThatAreLoadedAlready(t *testing.T) {
	h := nursery(t)
	defer h.stop()
	id := h.warm(t, "six").GetZygoteId()
	const version = "import six\ndef f(): return six.__version__\n"
	warm, err := h.execute(t.Context(), importing("warm", "six"), version, "f")
	if err != nil || warm.checkpoint != id || warm.envelope.Value != "1.16.0" {
		t.Fatalf("%v: %+v", err, warm)
	}
	other := importing("other", "six")
	other.Packages = []string{"six==1.15.0"}
	a, err := h.execute(t.Context(), other, version, "f")
	if err != nil || a.start != forked || a.checkpoint != hotset.Root || a.envelope.Value != "1.15.0" {
		t.Errorf("the header's packages: %v: %+v", err, a)
	}
	// The root has cloudpickle loaded: this one is for nobody but a cold start.
	bundle := importing("pickle", "six")
	bundle.Packages = []string{"cloudpickle==2.2.1"}
	a, err = h.execute(t.Context(), bundle, "import cloudpickle\ndef f(): return cloudpickle.__version__\n", "f")
	if err != nil || a.start != cold || a.checkpoint != "" || a.envelope.Value != "2.2.1" {
		t.Errorf("a package that the root has: %v: %+v", err, a)
	}
	// In the pickle: known only once the executor has it.
	a, err = h.send(t.Context(), importing("inside", "six"), pickle(t, "{'func': lambda: __import__('six').__version__, 'args': (), 'kwargs': {}, 'packages': ['six==1.15.0']}"))
	if err != nil || a.start != cold || !strings.Contains(string(a.payload), "1.15.0") {
		t.Errorf("the pickle's packages: %v: %v %q", err, a.start, a.payload)
	}
	// A session's container cannot become another one.
	first := importing("s1", "six")
	first.SessionId = "s"
	if a, err = h.execute(t.Context(), first, version, "f"); err != nil || a.checkpoint != id {
		t.Fatalf("%v: %+v", err, a)
	}
	next := importing("s2", "six")
	next.SessionId, next.ContainerId, next.Packages = "s", &a.container, []string{"six==1.15.0"}
	if _, err := h.execute(t.Context(), next, version, "f"); edge.Reason(err) != "PACKAGE_CONFLICT" {
		t.Errorf("the session's later packages: %v", err)
	}
}

// Imports that cannot be forked are named, never tried again, and served without.
func TestUnfitImports(t *testing.T) {
	h := nursery(t)
	defer h.stop()
	_, err := h.zygotes.WarmZygote(t.Context(), &hearthv1.WarmZygoteRequest{Modules: []string{"decimal", "not_there_at_all"}})
	if edge.Reason(err) != "ZYGOTE_UNFIT" || connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "not_there_at_all") {
		t.Fatalf("warmed: %v", err)
	}
	for i := range 3 {
		if _, err := h.execute(t.Context(), importing(fmt.Sprint(i), "decimal", "not_there_at_all"), sees, "f", "decimal"); err != nil {
			t.Fatal(err)
		}
	}
	h.await(t, "the rest of them", func(l *hearthv1.ListZygotesResponse) bool { return live(l, hotset.Name([]string{"decimal"})) })
	for _, bad := range []string{"os.path", "1", ""} {
		if _, err := h.zygotes.PinZygote(t.Context(), &hearthv1.PinZygoteRequest{Modules: []string{bad}}); edge.Reason(err) != "MODULES_INVALID" {
			t.Errorf("pin %q: %v", bad, err)
		}
	}
	if _, err := h.zygotes.UnpinZygote(t.Context(), &hearthv1.UnpinZygoteRequest{Modules: []string{"decimal"}}); edge.Reason(err) != "ZYGOTE_NOT_PINNED" {
		t.Errorf("unpin: %v", err)
	}
}

// A hundred calls at once with the same imports, from the zygote or found ready, and
// none of them cold.
func TestAHundredFromOneZygote(t *testing.T) {
	h := nursery(t, func(c *worker.Config) { c.ZygotePool = 16; c.StartTimeout = 2 * time.Minute })
	defer h.stop()
	id := h.warm(t, "decimal").GetZygoteId()
	var wait sync.WaitGroup
	for i := range 100 {
		wait.Go(func() {
			a, err := h.execute(t.Context(), importing(fmt.Sprint("many-", i), "decimal"), "def f(i): return i", "f", i)
			if err != nil || a.envelope.Value != float64(i) || a.checkpoint != id || a.start != forked && a.start != pooled {
				t.Errorf("call %d: %v %+v", i, err, a)
			}
		})
	}
	wait.Wait()
	counts := h.list(t).GetUsage()[0].GetStarts()
	if counts.GetCheckpoint()+counts.GetPooled() != 100 || counts.GetCold() != 0 {
		t.Errorf("counted %v", counts)
	}
	t.Log("starts", counts)
}

// Twenty import sets in a shuffled trace, with room for a few: the memory of all that
// is kept stays within the budget, the hot ones are kept.
func TestTraceStaysWithinBudget(t *testing.T) {
	const budget = 64 << 20
	h := nursery(t, func(c *worker.Config) { c.ZygoteMemory, c.ZygotePool = budget, 4 })
	defer h.stop()
	h.await(t, "the root", func(l *hearthv1.ListZygotesResponse) bool { return live(l, hotset.Root) })
	modules := []string{"decimal", "fractions", "statistics", "sqlite3", "asyncio", "email", "xml", "csv", "difflib", "zipapp",
		"html", "http", "urllib", "unittest", "pydoc", "argparse", "configparser", "calendar", "tarfile", "mailbox"}
	rng := rand.New(rand.NewPCG(4, 2))
	var trace [][]string
	for i := range 20 {
		set := []string{modules[i], modules[(i*7+3)%20], modules[(i*3+1)%20]}
		for range 2 + 40/(i+1)/4 { // the first are called the most
			trace = append(trace, set)
		}
	}
	rng.Shuffle(len(trace), func(i, j int) { trace[i], trace[j] = trace[j], trace[i] })
	var series []string
	for i, set := range trace {
		if _, err := h.execute(t.Context(), importing(fmt.Sprint("t", i), set...), "def f(): return 1", "f"); err != nil {
			t.Fatal(err)
		}
		l := h.list(t)
		u := l.GetUsage()[0]
		if u.GetUsedBytes() > budget {
			t.Errorf("after call %d: %d of %d bytes", i, u.GetUsedBytes(), budget)
		}
		series = append(series, fmt.Sprintf("%d/%d", u.GetUsedBytes()>>20, len(l.GetZygotes())))
	}
	t.Logf("%d calls of 20 sets, MiB/zygotes after each: %s", len(trace), strings.Join(series, " "))
	t.Log("starts", h.list(t).GetUsage()[0].GetStarts())
}

// A zygote that is killed is built again; what it forked lives on, and what comes
// meanwhile starts from what is left and says so.
func TestKilledZygote(t *testing.T) {
	h := nursery(t)
	defer h.stop()
	z := h.warm(t, "decimal")
	begun, result := make(chan struct{}), make(chan error, 1)
	go func() {
		stream, err := h.client.RequestExecution(context.Background())
		if err != nil {
			result <- err
			return
		}
		defer stream.Close()
		_ = stream.Send(importing("lives", "decimal"))
		_ = stream.Send(&serverless.WorkerExecutionRequest{Payload: []byte(`{"source":"import time, decimal\ndef f():\n    print('up')\n    time.sleep(1)\n    return 5","entry":"f"}`)})
		_ = stream.CloseSend()
		payload := ""
		for {
			res, err := stream.Receive()
			if err != nil {
				if !strings.Contains(payload, `"value":5`) {
					result <- fmt.Errorf("answer %q: %w", payload, err)
				}
				close(result)
				return
			}
			if res.GetLogs() != "" {
				close(begun)
			}
			payload += string(res.GetPayload())
		}
	}()
	<-begun
	kill := func(id string) {
		if err := syscall.Kill(int(zygoteOf(h.list(t), id).GetPid()), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		h.await(t, "the death of "+id, func(l *hearthv1.ListZygotesResponse) bool { return !live(l, id) })
	}
	kill(z.GetZygoteId())
	if a, err := h.execute(t.Context(), importing("meanwhile", "decimal"), sees, "f", "decimal"); err != nil || a.checkpoint != hotset.Root {
		t.Errorf("without its zygote: %v %+v", err, a)
	}
	kill(hotset.Root)
	if a, err := h.execute(t.Context(), importing("cold", "decimal"), sees, "f", "decimal"); err != nil || a.start != cold && a.checkpoint == "" {
		t.Errorf("without any zygote: %v %+v", err, a)
	}
	if err := <-result; err != nil {
		t.Errorf("the call that ran: %v", err)
	}
	h.await(t, "the root again", func(l *hearthv1.ListZygotesResponse) bool { return live(l, hotset.Root) })
	h.warm(t, "decimal")
	if a, err := h.execute(t.Context(), importing("after", "decimal"), sees, "f", "decimal"); err != nil || a.checkpoint != z.GetZygoteId() {
		t.Errorf("with the new one: %v %+v", err, a)
	}
}

// A container that dies while it stands ready is taken away, and another made.
func TestKilledWhileStandingReady(t *testing.T) {
	folder := t.TempDir()
	h := nursery(t, func(c *worker.Config) { c.DataDir, c.ZygotePool = folder, 1 })
	defer h.stop()
	h.await(t, "the pool", func(l *hearthv1.ListZygotesResponse) bool { return zygoteOf(l, hotset.Root).GetPooled() == 1 })
	first := standing(t, folder, h.list(t))
	if len(first) != 1 {
		t.Fatalf("processes in containers: %v", first)
	}
	if err := syscall.Kill(first[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.await(t, "another", func(l *hearthv1.ListZygotesResponse) bool {
		now := standing(t, folder, l)
		return zygoteOf(l, hotset.Root).GetPooled() == 1 && len(now) == 1 && now[0] != first[0]
	})
	a, err := h.execute(t.Context(), header("after"), "def f(): return 1", "f")
	if err != nil || a.start != pooled || a.envelope.Value != 1.0 {
		t.Errorf("%v: %+v", err, a)
	}
}

// standing are the processes of a worker's folder that are no zygotes.
func standing(t *testing.T, folder string, list *hearthv1.ListZygotesResponse) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		line, gone := os.ReadFile(file)
		if err == nil && gone == nil && bytes.Contains(line, []byte(folder)) &&
			!slices.ContainsFunc(list.GetZygotes(), func(z *hearthv1.Zygote) bool { return int(z.GetPid()) == pid }) {
			pids = append(pids, pid)
		}
	}
	return pids
}
