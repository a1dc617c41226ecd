package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hearth-run/hearth/adapters/bash"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

// actAsRuntime makes the test's program be a Runtime Server for Bash.
const actAsRuntime = "E2E_ACT_AS_RUNTIME"

func serveRuntime(ctx context.Context, listen, workspace string) int {
	language, err := bash.New(bash.Config{})
	if err == nil {
		p := runtimeserver.Process{Listen: listen, Config: runtimeserver.Default(workspace)}
		err = p.Serve(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)), language)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fleet is a control plane, a gateway and three nodes, each with a Runtime Server,
// all as processes of their own.
type fleet struct {
	t        *testing.T
	folder   string
	ports    map[string]string
	parts    map[string]*part
	proxies  map[string]*proxy
	starters map[string]func() *part
}

var fleetNodes = []string{"1", "2", "3"}

// freePort returns an address that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, folder: t.TempDir(), ports: map[string]string{}, parts: map[string]*part{}, proxies: map[string]*proxy{}, starters: map[string]func() *part{}}
	for _, name := range []string{"control", "gateway", "node-1", "node-2", "node-3"} {
		f.ports[name] = freePort(t)
	}
	f.starters["control"] = func() *part {
		return begin(t, f.ports["control"], "controlplane", "--listen", f.ports["control"], "--data", filepath.Join(f.folder, "control"), "--lease", "3s", "--lease-margin", "1s")
	}
	f.starters["gateway"] = func() *part {
		return begin(t, f.ports["gateway"], "gateway", "--listen", f.ports["gateway"], "--control-plane", f.ports["control"])
	}
	for _, n := range fleetNodes {
		f.proxies["control-"+n] = through(t, f.ports["control"])
		f.proxies["node-"+n] = through(t, f.ports["node-"+n])
		f.starters["runtime-"+n] = func() *part { return f.runtime(n) }
		f.starters["node-"+n] = func() *part { return f.node(n) }
	}
	for _, name := range []string{"control", "runtime-1", "runtime-2", "runtime-3", "node-1", "node-2", "node-3", "gateway"} {
		f.parts[name] = f.starters[name]()
	}
	return f
}

func (f *fleet) runtime(n string) *part {
	socket := "unix:" + filepath.Join(f.folder, "rt"+n)
	p := &part{cmd: command(), stderr: &safeBuffer{}}
	p.cmd.Env = append(os.Environ(), actAsRuntime+"="+socket+","+filepath.Join(f.folder, "ws"+n))
	p.cmd.Stderr = p.stderr
	if err := p.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { p.kill(syscall.SIGKILL) })
	p.until(f.t, "runtime server is open")
	return p
}

func (f *fleet) node(n string) *part {
	return begin(f.t, f.ports["node-"+n], "runtimed", "--name", "n"+n, "--runtime", "bash", "--capacity", "8",
		"--listen", f.ports["node-"+n], "--advertise", "http://"+f.proxies["node-"+n].address(),
		"--control-plane", f.proxies["control-"+n].address(), "--runtime-server", "unix:"+filepath.Join(f.folder, "rt"+n),
		"--workspace", filepath.Join(f.folder, "ws"+n), "--data", filepath.Join(f.folder, "nd"+n), "--patience", "3s")
}

// restart kills a part and starts it again after a while.
func (f *fleet) restart(name string, after time.Duration) {
	f.parts[name].kill(syscall.SIGKILL)
	time.Sleep(after)
	f.parts[name] = f.starters[name]()
}

// outcome is what its caller learned of a call.
type outcome struct{ id, kind, detail string }

// refusals are the reasons with which a call was turned away before anything ran.
var refusals = []string{
	"INVOCATION_ACTIVE", "RUN_NOT_READY", "RUN_NOT_FOUND", "RUN_ENDED", "NODE_FENCED",
	"REGISTRATION_STALE", "REGISTRATION_DRAINING", "REGISTRATION_FAILED", "REGISTRATION_NOT_READY", "GATEWAY_OVERLOADED",
}

// invoke makes one call and says what its caller knows afterwards.
func (f *fleet) invoke(client *http.Client, run, id string) outcome {
	req, err := http.NewRequest(http.MethodPost, "http://"+f.ports["gateway"]+"/v1/namespaces/default/runs/"+run+":invoke", strings.NewReader(`"`+id+`"`))
	if err != nil {
		return outcome{id, "unknown", err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Hearth-Invocation-Id", id)
	req.Header.Set("Hearth-Timeout-Millis", "10000")
	res, err := client.Do(req)
	if err != nil {
		return outcome{id, "unknown", "connection"}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return outcome{id, "unknown", "connection"}
	case res.StatusCode == http.StatusOK:
		return outcome{id, "answered", "200"}
	}
	reason := reasonOf(body)
	if slices.Contains(refusals, reason) {
		return outcome{id, "refused", reason}
	}
	return outcome{id, "unknown", reason}
}

// reasonOf reads the reason from Connect's error JSON.
func reasonOf(body []byte) string {
	var e struct {
		Code    string
		Details []struct {
			Type  string
			Debug struct{ Reason string }
		}
	}
	if json.Unmarshal(body, &e) == nil {
		for _, d := range e.Details {
			if d.Debug.Reason != "" {
				return d.Debug.Reason
			}
		}
	}
	return e.Code
}

// executions reads the witness: how often each ID was executed.
func executions(t *testing.T, path string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		counts[strings.Trim(line, "\"\n")]++
	}
	return counts
}

// chaosTime is how long the load and the faults go on.
const chaosTime = 2 * time.Minute

// Processes are killed, stopped and cut off under a load of fifty calls a second:
// nothing is executed twice, no Run is lost, and each caller learns what it can.
// The functions are the witness: each execution writes its ID to a file.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("two minutes of faults")
	}
	f := newFleet(t)
	h := &house{doors: map[string]string{"controlplane": f.ports["control"], "gateway": f.ports["gateway"]}}
	witness := filepath.Join(f.folder, "witness")
	if err := os.WriteFile(witness, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "w.sh")
	if err := os.WriteFile(source, []byte("run() { printf '%s\\n' \"$1\" >> \"$WITNESS\"; printf '%s' \"$1\"; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var runs []string
	for i := range 8 {
		name := fmt.Sprintf("chaos%d", i)
		h.run(t, 0, "run", "create", name, "--runtime", "bash", "--handler", "w.run", "--source", source, "--env", "WITNESS="+witness, "--wait")
		runs = append(runs, name)
	}
	ctx, stop := context.WithTimeout(t.Context(), chaosTime)
	defer stop()
	loaded := make(chan []outcome)
	go func() { loaded <- f.load(ctx, runs) }()
	f.faults(ctx)
	outcomes := <-loaded
	for _, p := range f.proxies {
		p.set(false, 0)
	}
	for _, name := range runs {
		h.run(t, 0, "run", "wait", name, "--timeout", "60s")
		h.awaitCall(t, name)
	}
	judge(t, outcomes, executions(t, witness))
}

// awaitCall calls a Run that is ready: the gateway may hear of it a moment later.
func (h *house) awaitCall(t *testing.T, name string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		res := h.callAt(t, name)
		if res == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("run %s is ready and answers %d", name, res)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (h *house) callAt(t *testing.T, name string) int {
	t.Helper()
	res, err := http.Post("http://"+h.doors["gateway"]+"/v1/namespaces/default/runs/"+name+":invoke", "application/json", strings.NewReader(`"after"`))
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// load makes fifty calls a second, each on its own, until ctx is done.
func (f *fleet) load(ctx context.Context, runs []string) []outcome {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 15 * time.Second}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var all []outcome
	var calls sync.WaitGroup
	ticker := time.NewTicker(time.Second / 50)
	defer ticker.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			calls.Go(func() {
				o := f.invoke(client, runs[i%len(runs)], fmt.Sprintf("c%d", i))
				mu.Lock()
				defer mu.Unlock()
				all = append(all, o)
			})
		}
	}
	calls.Wait()
	return all
}

// faults does something bad every few seconds until ctx is done.
func (f *fleet) faults(ctx context.Context) {
	seed := uint64(time.Now().UnixNano())
	f.t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	killable := slices.Sorted(maps.Keys(f.parts))
	for ctx.Err() == nil {
		n := fleetNodes[random.IntN(3)]
		switch random.IntN(6) {
		case 0, 1:
			f.restart(killable[random.IntN(len(killable))], time.Duration(random.IntN(2000))*time.Millisecond)
		case 2: // stopped for longer than its lease and the margin
			process := f.parts["node-"+n].cmd.Process
			_ = process.Signal(syscall.SIGSTOP)
			pauseReal(ctx, 6*time.Second)
			_ = process.Signal(syscall.SIGCONT)
		case 3:
			f.proxies["control-"+n].set(true, 0)
			pauseReal(ctx, time.Duration(random.IntN(8000))*time.Millisecond)
			f.proxies["control-"+n].set(false, 0)
		case 4:
			f.proxies["node-"+n].set(true, 0)
			pauseReal(ctx, time.Duration(random.IntN(3000))*time.Millisecond)
			f.proxies["node-"+n].set(false, 0)
		case 5:
			f.proxies["node-"+n].set(false, 300*time.Millisecond)
			pauseReal(ctx, 3*time.Second)
			f.proxies["node-"+n].set(false, 0)
		}
		pauseReal(ctx, time.Duration(1000+random.IntN(2000))*time.Millisecond)
	}
}

// pauseReal lets real time pass: faults last.
func pauseReal(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// judge prints what became of the calls and holds it against the witness.
func judge(t *testing.T, outcomes []outcome, executed map[string]int) {
	t.Helper()
	table := map[string]int{}
	for _, o := range outcomes {
		n := executed[o.id]
		table[fmt.Sprintf("%-8s %-24s executed %d", o.kind, o.detail, n)]++
		switch {
		case n > 1:
			t.Errorf("call %s (%s, %s) was executed %d times", o.id, o.kind, o.detail, n)
		case o.kind == "answered" && n != 1:
			t.Errorf("call %s was answered and executed %d times", o.id, n)
		case o.kind == "refused" && n != 0:
			t.Errorf("call %s was refused (%s) and executed", o.id, o.detail)
		}
	}
	var out bytes.Buffer
	answered := 0
	for _, row := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(&out, "%6d  %s\n", table[row], row)
		if strings.HasPrefix(row, "answered") {
			answered += table[row]
		}
	}
	t.Logf("%d calls\n%s", len(outcomes), &out)
	if answered < len(outcomes)/4 {
		t.Errorf("only %d of %d calls were answered: the fleet does not recover", answered, len(outcomes))
	}
}
