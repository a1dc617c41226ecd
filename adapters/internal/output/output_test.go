package output_test

import (
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/adapters/internal/output"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink keeps what each stream got.
type sink struct {
	mu    sync.Mutex // guards texts
	texts map[runtimeserver.Stream]string
}

func (s *sink) Writer(id string, stream runtimeserver.Stream) io.WriteCloser {
	return &writer{s, runtimeserver.Stream(id) + stream}
}

func (*sink) Entry(string, string, string) {}

type writer struct {
	s    *sink
	name runtimeserver.Stream
}

func (w *writer) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.texts[w.name] += string(p)
	return len(p), nil
}

func (*writer) Close() error { return nil }

func TestStreamsReachTheLog(t *testing.T) {
	s := &sink{texts: map[runtimeserver.Stream]string{}}
	cmd := exec.Command("sh", "-c", `printf out; head -c 100000 /dev/zero | tr '\0' e >&2; printf end >&2`)
	pipes, err := output.Attach(cmd, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pipes.Started()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	pipes.Wait()
	if s.texts[runtimeserver.Stdout] != "out" || len(s.texts[runtimeserver.Stderr]) != 100003 {
		t.Errorf("stdout %q, %d bytes of stderr", s.texts[runtimeserver.Stdout], len(s.texts[runtimeserver.Stderr]))
	}
	if tail := pipes.Tail(); len(tail) != 4096 || !strings.HasSuffix(tail, "eeeend") {
		t.Errorf("a tail of %d bytes: …%q", len(tail), tail[max(0, len(tail)-10):])
	}
}
