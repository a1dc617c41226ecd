package python_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/adapters/python"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink keeps what user code writes.
type sink struct {
	mu    sync.Mutex
	bytes map[string]*bytes.Buffer // by "invocation/stream"
}

func newSink() *sink { return &sink{bytes: map[string]*bytes.Buffer{}} }

type sinkWriter struct {
	s   *sink
	key string
}

func (w sinkWriter) Write(p []byte) (int, error) { w.s.write(w.key, p); return len(p), nil }
func (w sinkWriter) Close() error                { return nil }

func (s *sink) Writer(id string, stream runtimeserver.Stream) io.WriteCloser {
	return sinkWriter{s, id + "/" + string(stream)}
}

func (s *sink) Entry(id, level, text string) {
	s.write(id+"/logger", []byte(level+" "+text+"\n"))
}

func (s *sink) write(key string, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes[key] == nil {
		s.bytes[key] = &bytes.Buffer{}
	}
	s.bytes[key].Write(p)
}

func (s *sink) text(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes[key] == nil {
		return ""
	}
	return s.bytes[key].String()
}

// world is what the tests share: one interpreter, and one keeper of each kind.
type world struct {
	lang   *python.Language
	keeper *process.Keeper
}

// newWorld opens a keeper for one test.
func newWorld(t testing.TB, noCgroup bool) *world {
	t.Helper()
	lang, err := language()
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := process.Open(process.Config{Dir: t.TempDir(), Name: "test", NoCgroup: noCgroup})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keeper.Close(); err != nil {
			t.Error(err)
		}
	})
	group, err := keeper.Group("language")
	if err != nil {
		t.Fatal(err)
	}
	own := *lang
	if err := own.Open(group); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	return &world{lang: &own, keeper: keeper}
}

var language = sync.OnceValues(func() (*python.Language, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	cfg := python.Default()
	if name := os.Getenv("HEARTH_BENCH_PYTHON"); name != "" {
		cfg.Interpreter = name // of a virtual environment with something to import
	}
	cfg.Cache = filepath.Join(dir, "hearth-test")
	return python.New(context.Background(), cfg, python.Deps{Log: slog.New(slog.DiscardHandler)})
})

// loaded is one function under test.
type loaded struct {
	t     testing.TB
	dir   string
	logs  *sink
	inst  runtimeserver.Instance
	group *process.Group
	err   error
	calls int
}

var environment = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "GREETING=hello"}

// load writes the files ("name", "content", …; app.py first) and loads app.handle.
func (w *world) load(t testing.TB, handler string, files ...string) *loaded {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return w.loadDir(t, dir, handler)
}

func (w *world) loadDir(t testing.TB, dir, handler string) *loaded {
	t.Helper()
	group, err := w.keeper.Group("python")
	if err != nil {
		t.Fatal(err)
	}
	l := &loaded{t: t, dir: dir, logs: newSink(), group: group}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l.inst, l.err = w.lang.Load(ctx, runtimeserver.Function{
		RunUID: "run-1", RegistrationID: "reg_1", Attempt: 1, Dir: dir, Handler: handler,
		Env: environment, Processes: group, Temp: dir, Logs: l.logs,
	})
	t.Cleanup(l.close)
	return l
}

// app loads one file and wants it to load.
func (w *world) app(t testing.TB, source string) *loaded {
	t.Helper()
	l := w.load(t, "app.handle", "app.py", source)
	if l.err != nil {
		t.Fatalf("load: %v", l.err)
	}
	return l
}

// close ends the function and makes sure that it left no process.
func (l *loaded) close() {
	if l.inst != nil {
		if err := l.inst.Close(); err != nil {
			l.t.Errorf("close: %v", err)
		}
	}
	if left, err := l.group.Left(); left || err != nil {
		l.t.Errorf("after close processes are left: %v, %v", left, err)
	}
	if err := l.group.Close(); err != nil {
		l.t.Errorf("close group: %v", err)
	}
}

// call runs one call with a generous deadline.
func (l *loaded) call(input string) (runtimeserver.Result, error) {
	return l.callFor(time.Minute, input)
}

func (l *loaded) callFor(d time.Duration, input string) (runtimeserver.Result, error) {
	deadline := time.Now().Add(d)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	l.calls++
	return l.inst.Invoke(ctx, runtimeserver.Call{
		InvocationID: l.id(), Input: []byte(input), ContentType: "application/json", Deadline: deadline,
	})
}

func (l *loaded) id() string { return "call-" + string(rune('0'+l.calls)) }

// want runs a call that must answer output.
func (l *loaded) want(input, output string) {
	l.t.Helper()
	got, err := l.call(input)
	if err != nil {
		l.t.Fatalf("call %.100s: %v", input, err)
	}
	if string(got.Output) != output {
		l.t.Fatalf("call %.100s: answered %.300s, want %.300s", input, got.Output, output)
	}
}

// text returns the error's text, or "".
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func mustContain(t testing.TB, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in:\n%s", part, got)
		}
	}
}
