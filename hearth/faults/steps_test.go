package faults

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/hop"
)

// maxRuns bounds the Runs of a world at one time.
const maxRuns = 6

// step is one thing that happens; weight says how often.
type step struct {
	name   string
	weight int
	do     func(*world)
}

var steps = []step{
	{"invoke", 60, (*world).invoke},
	{"wait", 40, (*world).wait},
	{"create", 6, (*world).create},
	{"look", 8, (*world).look},
	{"stale", 6, (*world).stale},
	{"probe", 6, (*world).probe},
	{"cancel", 1, (*world).cancel},
	{"delete", 1, (*world).delete},
	{"kill", 1, (*world).killOne},
	{"restart", 12, (*world).restartOne},
	{"cut", 1, (*world).cutOne},
	{"lose", 1, (*world).loseOne},
	{"heal", 4, func(w *world) { w.net.heal() }},
	{"freeze", 1, (*world).freezeOne},
	{"thaw", 5, (*world).thawAll},
}

// draw chooses a step.
func (w *world) step() {
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	n := w.random.IntN(total)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			s.do(w)
			return
		}
	}
}

// async runs a call beside the steps, a few at a time.
func (w *world) async(call func(ctx context.Context)) {
	w.queue <- struct{}{}
	w.calls.Go(func() {
		defer func() { <-w.queue }()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		call(ctx)
	})
}

func (w *world) wait() {
	d := time.Duration(w.random.IntN(400)) * time.Millisecond
	if w.random.IntN(12) == 0 {
		d = time.Duration(w.random.IntN(20_000)) * time.Millisecond
	}
	time.Sleep(d) // synthetic: it lets the world go on
}

func (w *world) anyRun() (string, known, bool) {
	runs := w.model.runs()
	if len(runs) == 0 {
		return "", known{}, false
	}
	uid := runs[w.random.IntN(len(runs))]
	return uid, w.model.known(uid), true
}

func (w *world) create() {
	if len(w.model.runs()) >= maxRuns {
		return
	}
	name := w.model.next("run")
	w.async(func(ctx context.Context) {
		res, err := w.runs.CreateRun(ctx, createRequest(name))
		if err == nil {
			w.model.ack(res.GetRun())
		}
	})
}

func createRequest(name string) *hearthv1.CreateRunRequest {
	return &hearthv1.CreateRunRequest{Name: name, Spec: &hearthv1.RunSpec{
		Runtime: "fake",
		Source: &hearthv1.Source{Kind: &hearthv1.Source_Inline{Inline: &hearthv1.InlineSource{
			Files: []*hearthv1.InlineFile{{Path: "f", Data: &hearthv1.InlineFile_Text{Text: "code"}}},
		}}},
		Mode:        &hearthv1.RunSpec_Function{Function: &hearthv1.FunctionMode{Handler: "f.f"}},
		RetryPolicy: &hearthv1.RetryPolicy{MaxAttempts: 1000, MaxBackoff: durationpb.New(2 * time.Second)},
	}}
}

func (w *world) invoke() {
	uid, k, ok := w.anyRun()
	if !ok {
		return
	}
	id := w.model.next("call")
	w.async(func(ctx context.Context) {
		res, err := w.gate.Invoke(ctx, &hearthv1.InvokeRequest{Name: k.name, RunUid: uid, InvocationId: id, Input: []byte(id)})
		if err == nil {
			w.model.answer()
		}
		if err == nil && (string(res.GetOutput()) != id || res.GetRunUid() != uid || w.witness.count(id) != 1) {
			w.witness.violate("once", "call %s was answered %q for %s and executed %d times", id, res.GetOutput(), res.GetRunUid(), w.witness.count(id))
		}
	})
}

// look reads a Run: it must be there, and its triple is remembered.
func (w *world) look() {
	uid, k, ok := w.anyRun()
	if !ok {
		return
	}
	w.async(func(ctx context.Context) { w.check(ctx, uid, k.name) })
}

func (w *world) check(ctx context.Context, uid, name string) *hearthv1.Run {
	res, err := w.runs.GetRun(ctx, &hearthv1.GetRunRequest{Name: name, Uid: uid})
	if connect.CodeOf(err) == connect.CodeNotFound && err != nil {
		if k := w.model.known(uid); k.name != "" {
			w.witness.violate("acked", "run %s (%s) was acknowledged and is not there", name, uid)
		}
		return nil
	}
	if err != nil {
		return nil
	}
	w.model.saw(res.GetRun())
	return res.GetRun()
}

// stale calls a node with a triple that the control plane has left behind. That
// it is stale is asked first: it never becomes right again.
func (w *world) stale() {
	t, ok := w.model.past(w.random.IntN)
	if !ok {
		return
	}
	target := "inprocess:node-" + nodeNames[w.random.IntN(2)]
	id := w.model.next(stalePrefix)
	w.async(func(ctx context.Context) {
		k := w.model.known(t.run)
		if k.name == "" {
			return
		}
		run := w.check(ctx, t.run, k.name)
		if run == nil || (run.GetStatus().GetAttempt() == t.attempt && run.GetStatus().GetNodeUid() == t.node) {
			return
		}
		if err := w.call(ctx, target, t, id); err == nil {
			w.witness.violate("fenced", "%s was answered although run %s is at attempt %d", id, t.run, run.GetStatus().GetAttempt())
		}
	})
}

// call invokes a Run at a node directly.
func (w *world) call(ctx context.Context, address string, t triple, id string) error {
	client, err := dialer{w, "user", context.Background()}.Client(address)
	if err != nil {
		return err
	}
	ctx, info := connect.NewClientContext(ctx)
	hop.Fence{Attempt: t.attempt, NodeUID: t.node}.Write(info.RequestHeader())
	_, err = executorv1connect.NewFunctionRuntimeClient(client).InvokeFunction(ctx, &executorv1.InvokeFunctionRequest{
		Registration: &executorv1.FunctionRegistration{RunUid: t.run}, InvocationId: id,
	})
	return err
}

// probe calls every node that a Run was seen at, at once: the witness sees if two
// of them serve it.
func (w *world) probe() {
	t, ok := w.model.past(w.random.IntN)
	if !ok {
		return
	}
	w.model.mu.Lock()
	var all []triple
	for _, other := range w.model.triples {
		if other.run == t.run {
			all = append(all, other)
		}
	}
	w.model.mu.Unlock()
	for _, t := range all[max(0, len(all)-3):] {
		id := w.model.next(probePrefix)
		w.async(func(ctx context.Context) { _ = w.call(ctx, t.address, t, id) })
	}
}

func (w *world) cancel() {
	uid, k, ok := w.anyRun()
	if !ok {
		return
	}
	w.async(func(ctx context.Context) {
		w.model.cancel(uid)
		_, _ = w.runs.CancelRun(ctx, &hearthv1.CancelRunRequest{Name: k.name, Uid: uid})
	})
}

func (w *world) delete() {
	uid, k, ok := w.anyRun()
	if !ok {
		return
	}
	w.async(func(ctx context.Context) {
		w.model.remove(uid) // from here on it may be gone
		_, _ = w.runs.DeleteRun(ctx, &hearthv1.DeleteRunRequest{Name: k.name, Uid: uid})
	})
}

var mortal = []string{"control", "gateway", "node-a", "node-b", "runtime-a", "runtime-b"}

var links = []string{
	"user>control", "user>gateway", "gateway>control", "gateway>node-a", "gateway>node-b",
	"node-a>control", "node-b>control", "node-a>runtime-a", "node-b>runtime-b", "node-a>node-b", "node-b>node-a",
}

func (w *world) killOne() { w.kill(mortal[w.random.IntN(len(mortal))]) }

func (w *world) restartOne() { w.start(mortal[w.random.IntN(len(mortal))]) }

func (w *world) cutOne() { w.net.sever(links[w.random.IntN(len(links))]) }

func (w *world) loseOne() { w.net.set(w.net.lossy, links[w.random.IntN(len(links))], true) }

func (w *world) freezeOne() { w.procs[mortal[w.random.IntN(len(mortal))]].freeze() }

func (w *world) thawAll() {
	for _, p := range w.procs {
		p.thaw()
	}
}

// settle ends all faults, gives the world time and looks at what became of it.
func (w *world) settle() {
	w.thawAll()
	w.net.heal()
	for _, name := range mortal {
		w.start(name)
	}
	w.calls.Wait()
	time.Sleep(5 * time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for _, uid := range w.model.runs() {
		w.settled(ctx, uid, w.model.known(uid))
	}
	w.returned(ctx)
}

func (w *world) settled(ctx context.Context, uid string, k known) {
	run := w.check(ctx, uid, k.name)
	phase := run.GetStatus().GetPhase()
	if phase > hearthv1.RunPhase_RUN_PHASE_READY {
		return
	}
	if phase != hearthv1.RunPhase_RUN_PHASE_READY {
		w.witness.violate("settled", "run %s is %v (%v, %s) long after the faults", k.name, phase, run.GetStatus().GetReason(), run.GetStatus().GetMessage())
		return
	}
	id := w.model.next("settled")
	if _, err := w.gate.Invoke(ctx, &hearthv1.InvokeRequest{Name: k.name, RunUid: uid, InvocationId: id}); err != nil {
		w.witness.violate("settled", "run %s is ready and does not answer: %v", k.name, err)
	}
}

// returned ends every Run and looks at what is still held.
func (w *world) returned(ctx context.Context) {
	list, err := w.runs.ListRuns(ctx, &hearthv1.ListRunsRequest{PageSize: 1000})
	if err != nil {
		w.witness.violate("settled", "list: %v", err)
		return
	}
	for _, run := range list.GetRuns() {
		if _, err := w.runs.CancelRun(ctx, &hearthv1.CancelRunRequest{Name: run.GetName(), Uid: run.GetUid()}); err != nil {
			w.witness.violate("settled", "cancel %s: %v", run.GetName(), err)
		}
	}
	time.Sleep(2 * time.Minute)
	nodes, err := w.node.ListNodes(ctx, &hearthv1.ListNodesRequest{})
	if err != nil {
		w.witness.violate("settled", "list nodes: %v", err)
		return
	}
	for _, n := range nodes.GetNodes() {
		if n.GetReserved() != 0 {
			w.witness.violate("returned", "node %s (%v) still holds %d reservations", n.GetName(), n.GetState(), n.GetReserved())
		}
	}
	w.witness.mu.Lock()
	defer w.witness.mu.Unlock()
	if left := slices.Sorted(maps.Values(w.witness.loaded)); len(left) > 0 {
		w.witness.note("returned", "%d functions are still loaded: %s", len(left), strings.Join(left, ", "))
	}
}

// describe is a claim's name in a violation.
func describe(violation string) string {
	claim, _, _ := strings.Cut(violation, ":")
	return claim
}
