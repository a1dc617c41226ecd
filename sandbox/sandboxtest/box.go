//go:build linux

package sandboxtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hearth-run/hearth/sandbox"
)

var boxes atomic.Int64 // names containers; tests only

// python is a Spec that runs a script with arguments.
func python(t *testing.T, name string, args ...string) sandbox.Spec {
	t.Helper()
	p, err := findPython()
	if err != nil {
		t.Fatalf("the suite needs python3 on PATH: %v", err)
	}
	return sandbox.Spec{
		ID:      fmt.Sprintf("t%d", boxes.Add(1)),
		Argv:    append([]string{p.path, "-I", "-S", "-B", "-c", Script(t, name)}, args...),
		Env:     []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"},
		Binds:   p.binds,
		Scratch: []sandbox.Scratch{{Target: "/tmp", Bytes: 4 << 20}, {Target: "/dev/shm", Bytes: 1 << 20}},
		Limits:  sandbox.Limits{Memory: 256 << 20, Pids: 64, NoFile: 512},
	}
}

// shell is a Spec that runs one line of sh.
func shell(line string) sandbox.Spec {
	return sandbox.Spec{
		ID:      fmt.Sprintf("t%d", boxes.Add(1)),
		Argv:    []string{"/bin/sh", "-c", line},
		Env:     []string{"PATH=/usr/bin:/bin"},
		Binds:   sandbox.SystemBinds(),
		Scratch: []sandbox.Scratch{{Target: "/tmp", Bytes: 1 << 20}},
		Limits:  sandbox.Limits{Memory: 64 << 20, Pids: 32},
	}
}

// box is a started container with both ends of its stdio.
type box struct {
	sandbox.Container
	stdin io.WriteCloser
	lines *bufio.Reader // stdout and stderr together
}

// start runs the spec with pipes for its stdio; it is destroyed with the test.
func start(t *testing.T, d sandbox.Driver, spec sandbox.Spec) *box {
	t.Helper()
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	if spec.Stdin == nil {
		spec.Stdin = inR
	}
	spec.Stdout, spec.Stderr = outW, outW
	c, err := d.Create(patience(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Destroy(); err != nil {
			t.Error(err)
		}
	})
	err = c.Start(patience(t))
	_ = inR.Close()
	_ = outW.Close()
	if err != nil {
		t.Fatal(err)
	}
	if err := outR.SetReadDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	return &box{Container: c, stdin: inW, lines: bufio.NewReader(outR)}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
	return r, w
}

// line is the next line of output.
func (b *box) line(t *testing.T) string {
	t.Helper()
	text, err := b.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("read a line: %q, %v", text, err)
	}
	return strings.TrimSpace(text)
}

// rest is the output until all its writers are gone.
func (b *box) rest(t *testing.T) string {
	t.Helper()
	text, err := io.ReadAll(b.lines)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// end waits for the program's end.
func (b *box) end(t *testing.T) sandbox.Exit {
	t.Helper()
	exit, err := b.Wait(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

// held runs a script that judges by itself, and wants every wall to have held.
func held(t *testing.T, s *suite, d sandbox.Driver, spec sandbox.Spec) {
	t.Helper()
	b := start(t, d, spec)
	out := b.rest(t)
	s.judge(t, out, b.end(t))
}
