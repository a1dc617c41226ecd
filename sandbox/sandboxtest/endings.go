//go:build linux

package sandboxtest

import (
	"io"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hearth-run/hearth/sandbox"
)

// endingTests: however a program ends, it is told exactly and nothing stays.
var endingTests = map[string]func(*testing.T, *suite){
	"Exits":     exits,
	"Lingering": lingering,
	"Stubborn":  stubborn,
	"Orphans":   orphans,
	"KillTwice": killTwice,
}

func exits(t *testing.T, s *suite) {
	d := s.open(t)
	cases := map[string]sandbox.Exit{
		"pass":                           {},
		"os._exit(7)":                    {Code: 7},
		"sys.exit(300 & 255)":            {Code: 44},
		"ctypes.string_at(0)":            {Code: -1, Signal: syscall.SIGSEGV},
		"os.abort()":                     {Code: -1, Signal: syscall.SIGABRT},
		"os.kill(os.getpid(), 9)":        {Code: -1, Signal: syscall.SIGKILL},
		"os.kill(os.getpid(), 15)":       {Code: -1, Signal: syscall.SIGTERM},
		"os.kill(os.getpid(), 34)":       {Code: -1, Signal: syscall.Signal(34)},
		"raise SystemExit('to stderr')":  {Code: 1},
		"os.execv('/bin/false', ['no'])": {Code: 1},
	}
	for code, want := range cases {
		spec := python(t, "prelude")
		spec.Argv[5] = "import ctypes, os, sys\n" + code
		b := start(t, d, spec)
		if got := b.end(t); got != want {
			t.Errorf("%s: %+v, want %+v; %s", code, got, want, b.rest(t))
		}
	}
}

// lingering: daemons, stopped and signal-proof children hold a pipe open; its end is
// the proof that they were gone when Wait returned.
func lingering(t *testing.T, s *suite) {
	r, w := pipe(t)
	spec := python(t, "linger")
	spec.Files = []*os.File{w}
	b := start(t, s.open(t), spec)
	_ = w.Close()
	if exit := b.end(t); exit.Code != 0 {
		t.Fatalf("%+v: %s", exit, b.rest(t))
	}
	_ = r.SetReadDeadline(time.Now().Add(wait))
	all, err := io.ReadAll(r)
	if err != nil || string(all) != "ddd" {
		t.Errorf("children said %q, %v", all, err)
	}
}

func stubborn(t *testing.T, s *suite) {
	b := start(t, s.open(t), python(t, "stubborn"))
	if line := b.line(t); line != "ready" {
		t.Fatal(line, b.rest(t))
	}
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	want := sandbox.Exit{Code: -1, Signal: syscall.SIGKILL, Killed: true}
	if exit := b.end(t); exit != want {
		t.Errorf("%+v, want %+v", exit, want)
	}
}

func orphans(t *testing.T, s *suite) { held(t, s, s.open(t), python(t, "orphans")) }

// killTwice: Kill and Destroy at once, from many sides, and again afterwards.
func killTwice(t *testing.T, s *suite) {
	b := start(t, s.open(t), python(t, "stubborn"))
	b.line(t)
	var wait sync.WaitGroup
	for i := range 16 {
		wait.Go(func() {
			act := b.Kill
			if i%2 == 0 {
				act = b.Destroy
			}
			if err := act(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if err := b.Destroy(); err != nil {
		t.Error(err)
	}
	if err := b.Kill(); err != nil {
		t.Error(err)
	}
	if exit := b.end(t); !exit.Killed {
		t.Errorf("%+v", exit)
	}
}
