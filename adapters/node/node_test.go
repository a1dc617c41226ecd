package node_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/adapters/node"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal keeps what each stream of each invocation got.
type journal struct {
	mu    sync.Mutex // guards texts
	texts map[string][]byte
}

type page struct {
	j    *journal
	name string
}

func (j *journal) Writer(id string, stream runtimeserver.Stream) io.WriteCloser {
	return page{j, id + "/" + string(stream)}
}

func (*journal) Entry(string, string, string) {}

func (j *journal) text(name string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return string(j.texts[name])
}

func (p page) Write(b []byte) (int, error) {
	p.j.mu.Lock()
	defer p.j.mu.Unlock()
	p.j.texts[p.name] = append(p.j.texts[p.name], b...)
	return len(b), nil
}

func (page) Close() error { return nil }

// load writes files and loads a handler of them.
func load(t *testing.T, handler string, files map[string]string) (runtimeserver.Instance, *journal, error) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	language, err := node.New("")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keeper, err := process.Open(process.Config{Dir: t.TempDir(), Name: "node"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keeper.Close(); err != nil {
			t.Error(err)
		}
	})
	group, err := keeper.Group("test")
	if err != nil {
		t.Fatal(err)
	}
	j := &journal{texts: map[string][]byte{}}
	instance, err := language.Load(t.Context(), runtimeserver.Function{
		RunUID: "run", Dir: dir, Handler: handler, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HEARTH_RUN_UID=run"}, Processes: group, Logs: j,
	})
	if err == nil {
		t.Cleanup(func() {
			if err := instance.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return instance, j, err
}

func call(ctx context.Context, i runtimeserver.Instance, id, input string) (string, error) {
	res, err := i.Invoke(ctx, runtimeserver.Call{InvocationID: id, Input: []byte(input), Deadline: time.Now().Add(time.Minute)})
	return string(res.Output), err
}

// What JavaScript writes belongs to its call, whatever the call's answer.
func TestLogsBelongToTheirCall(t *testing.T) {
	i, j, err := load(t, "app.f", map[string]string{"app.js": `
		console.log('loading');
		exports.f = async (event, context) => {
			console.log('out', event);
			await new Promise((resolve) => setImmediate(resolve));
			console.error('err', context.invocationId);
			return context.remainingTimeMs() > 0;
		};`})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if out, err := call(t.Context(), i, id, `"`+id+`"`); out != "true" || err != nil {
			t.Errorf("%s %v", out, err)
		}
		if j.text(id+"/stdout") != "out "+id+"\n" || j.text(id+"/stderr") != "err "+id+"\n" {
			t.Errorf("%s: %q and %q", id, j.text(id+"/stdout"), j.text(id+"/stderr"))
		}
	}
	if j.text("/stdout") != "loading\n" {
		t.Errorf("the load wrote %q", j.text("/stdout"))
	}
}

// A loop that never yields is killed; the next call has a fresh load.
func TestKilledThenLoadedAfresh(t *testing.T) {
	i, _, err := load(t, "app.f", map[string]string{"app.js": `
		let calls = 0;
		exports.f = (event) => { calls++; while (event === 'spin'); return calls; };`})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := call(t.Context(), i, "a", "1"); out != "1" || err != nil {
		t.Fatal(out, err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, cause)
	defer cancel()
	if _, err := call(ctx, i, "b", `"spin"`); !errors.Is(err, cause) {
		t.Errorf("got %v, want the context's cause", err)
	}
	if out, err := call(t.Context(), i, "c", "1"); out != "1" || err != nil {
		t.Errorf("after the kill: %s %v", out, err)
	}
}

func TestModules(t *testing.T) {
	i, _, err := load(t, "app.f", map[string]string{
		"package.json": `{"type": "module"}`,
		"app.js":       "import { g } from './other.js';\nexport const f = (event) => g(event);",
		"other.js":     "export const g = (event) => event + 1;",
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := call(t.Context(), i, "a", "41"); out != "42" || err != nil {
		t.Error(out, err)
	}
}

// A beginner's errors name the file and the way out.
func TestFailuresTellWhere(t *testing.T) {
	_, _, err := load(t, "app.f", map[string]string{"app.js": "exports.f = () => {\n  return 1 +;\n};"})
	if failed, ok := errors.AsType[*runtimeserver.LoadError](err); !ok || !strings.Contains(failed.Text, "SyntaxError") {
		t.Errorf("a syntax error: %v", err)
	}
	_, _, err = load(t, "app.g", map[string]string{"app.js": "exports.f = () => 1;"})
	if !errors.Is(err, runtimeserver.ErrHandlerInvalid) || !strings.Contains(err.Error(), "g is no function that") {
		t.Errorf("no such function: %v", err)
	}
	i, _, err := load(t, "app.f", map[string]string{"app.js": "exports.f = () => {\n  Promise.reject(new Error('lost'));\n  return new Promise(() => setTimeout(() => {}, 60000));\n};"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = call(t.Context(), i, "a", "1")
	if failed, ok := errors.AsType[*runtimeserver.HandlerError](err); !ok || failed.ExitCode != 1 || !strings.Contains(failed.Trace, "app.js:2") {
		t.Errorf("an unhandled rejection: %v", err)
	}
}
