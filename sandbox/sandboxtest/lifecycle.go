//go:build linux

package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hearth-run/hearth/sandbox"
)

// lifecycleTests: a container is what its Spec says, and goes through its states.
var lifecycleTests = map[string]func(*testing.T, *suite){
	"AsTheSpecSays":    asTheSpecSays,
	"Binds":            binds,
	"WritableBind":     writableBind,
	"BindBeneathLink":  bindBeneathLink,
	"FilesGiven":       filesGiven,
	"States":           states,
	"BadSpecs":         badSpecs,
	"ProgramNotThere":  programNotThere,
	"CancelledStart":   cancelledStart,
	"CloseDestroysAll": closeDestroysAll,
}

func asTheSpecSays(t *testing.T, s *suite) {
	spec := shell(`pwd; hostname; env | sort | tr '\n' ' '; echo "$0 $1"; cat; umask; echo err >&2`)
	spec.Argv = append(spec.Argv, "zero", "ünï\ncode")
	spec.Env = []string{"A=1", "PATH=/usr/bin:/bin"}
	spec.Dir = "/tmp"
	b := start(t, s.open(t), spec)
	_, _ = b.stdin.Write([]byte("from stdin\n"))
	_ = b.stdin.Close()
	want := "/tmp\n" + spec.ID + "\nA=1 PATH=/usr/bin:/bin PWD=/tmp zero ünï\ncode\nfrom stdin\n0022\nerr"
	if got := b.rest(t); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.end(t)
}

// binds: a folder and a file elsewhere than on the host, one inside another bind, one
// optional and missing.
func binds(t *testing.T, s *suite) {
	host := t.TempDir()
	for name, text := range map[string]string{"pkg/mod": "module", "pkg/inner/.keep": "", "one": "file", "two/x": "nested"} {
		path := filepath.Join(host, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	spec := shell("cat /packages/deep/mod /data/one /packages/deep/inner/x; echo no >/packages/deep/mod || echo no >/packages/deep/inner/x || ls -A /packages")
	spec.Binds = append(spec.Binds,
		sandbox.Bind{Source: host + "/two", Target: "/packages/deep/inner"},
		sandbox.Bind{Source: host + "/pkg", Target: "/packages/deep"},
		sandbox.Bind{Source: host + "/one", Target: "/data/one"},
		sandbox.Bind{Source: host + "/missing", Optional: true})
	out := start(t, s.open(t), spec).rest(t)
	if !strings.HasPrefix(out, "module\nfile\nnested\n") || strings.Count(out, "Read-only file system") != 2 || !strings.HasSuffix(out, "\ndeep") {
		t.Errorf("%q", out)
	}
}

func writableBind(t *testing.T, s *suite) {
	host := t.TempDir()
	if err := os.Chmod(host, 0o777); err != nil {
		t.Fatal(err)
	}
	spec := shell("echo kept >/out/file")
	spec.Binds = append(spec.Binds, sandbox.Bind{Source: host, Target: "/out", Writable: true})
	b := start(t, s.open(t), spec)
	b.end(t)
	if text, err := os.ReadFile(host + "/file"); string(text) != "kept\n" {
		t.Errorf("%q, %v: %s", text, err, b.rest(t))
	}
}

func bindBeneathLink(t *testing.T, s *suite) {
	host := t.TempDir()
	if err := os.Symlink("/etc", host+"/link"); err != nil {
		t.Fatal(err)
	}
	spec := shell("true")
	spec.Binds = append(spec.Binds, sandbox.Bind{Source: host + "/link", Target: "/link"}, sandbox.Bind{Source: host, Target: "/link/x"})
	c, err := s.open(t).Create(patience(t), spec)
	if err == nil {
		err = c.Start(patience(t))
	}
	if err == nil || !strings.Contains(err.Error(), "/link/x") {
		t.Errorf("a bind through a link: %v", err)
	}
}

func filesGiven(t *testing.T, s *suite) {
	r, w := pipe(t)
	spec := shell("echo first >&4; read x <&3; echo $x")
	inR, inW := pipe(t)
	spec.Files = []*os.File{inR, w}
	b := start(t, s.open(t), spec)
	_ = w.Close()
	if _, err := inW.Write([]byte("second\n")); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 6)
	if _, err := r.Read(buffer); err != nil || string(buffer) != "first\n" {
		t.Errorf("%q, %v", buffer, err)
	}
	if out := b.rest(t); out != "second" {
		t.Errorf("%q", out)
	}
}

func states(t *testing.T, s *suite) {
	d := s.open(t)
	spec := shell("read x")
	c, err := d.Create(patience(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	want := func(what string, err, target error) {
		t.Helper()
		if !errors.Is(err, target) {
			t.Errorf("%s: %v, want %v", what, err, target)
		}
	}
	_, err = d.Create(patience(t), spec)
	want("create again", err, sandbox.ErrExists)
	_, err = c.Wait(patience(t))
	want("wait before start", err, sandbox.ErrState)
	want("kill before start", c.Kill(), nil)
	r, w := pipe(t)
	spec.Stdin, spec.ID = r, spec.ID+"b"
	running, err := d.Create(patience(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	want("start", running.Start(patience(t)), nil)
	want("start again", running.Start(patience(t)), sandbox.ErrState)
	cancelled, cancel := context.WithCancel(patience(t))
	cancel()
	_, err = running.Wait(cancelled)
	want("wait, cancelled", err, context.Canceled)
	_ = w.Close()
	_ = r.Close()
	_, err = running.Wait(patience(t))
	want("wait", err, nil)
	for range 2 {
		want("destroy", running.Destroy(), nil)
	}
	_, err = running.Stats()
	want("stats after the end", err, sandbox.ErrState)
	want("grow after the end", running.Grow(1<<30), sandbox.ErrState)
	want("start after the end", running.Start(patience(t)), sandbox.ErrState)
	_, err = running.Wait(patience(t))
	want("wait after the end", err, nil)
	want("destroy unstarted", c.Destroy(), nil)
	again, err := d.Create(patience(t), spec)
	want("the name is free again", err, nil)
	want("close", d.Close(), nil)
	want("close again", d.Close(), nil)
	want("destroyed by close", again.Destroy(), nil)
	_, err = d.Create(patience(t), spec)
	want("create after close", err, sandbox.ErrClosed)
}

func badSpecs(t *testing.T, s *suite) {
	d := s.open(t)
	cases := map[string]func(*sandbox.Spec){
		"id":          func(s *sandbox.Spec) { s.ID = "../x" },
		"argv":        func(s *sandbox.Spec) { s.Argv = nil },
		"relative":    func(s *sandbox.Spec) { s.Argv[0] = "sh" },
		"nul":         func(s *sandbox.Spec) { s.Env = []string{"A=\x00"} },
		"dir":         func(s *sandbox.Spec) { s.Dir = "x" },
		"bind source": func(s *sandbox.Spec) { s.Binds = []sandbox.Bind{{Source: "x"}} },
		"bind target": func(s *sandbox.Spec) { s.Binds = []sandbox.Bind{{Source: "/usr", Target: "/a/../b"}} },
		"bind root":   func(s *sandbox.Spec) { s.Binds = []sandbox.Bind{{Source: "/"}} },
		"scratch":     func(s *sandbox.Spec) { s.Scratch = []sandbox.Scratch{{Target: "/tmp"}} },
		"user":        func(s *sandbox.Spec) { s.User.GID = 7 },
		"memory":      func(s *sandbox.Spec) { s.Limits.Memory = 1 },
		"pids":        func(s *sandbox.Spec) { s.Limits.Pids = 1 },
		"cpu":         func(s *sandbox.Spec) { s.Limits.MilliCPU = 1 },
		"network":     func(s *sandbox.Spec) { s.Network = 9 },
	}
	for name, spoil := range cases {
		spec := shell("true")
		spoil(&spec)
		if c, err := d.Create(patience(t), spec); err == nil {
			t.Errorf("%s: a bad spec was taken", name)
			_ = c.Destroy()
		}
	}
}

func programNotThere(t *testing.T, s *suite) {
	d := s.open(t)
	for name, spoil := range map[string]func(*sandbox.Spec){
		"/no/such/program": func(s *sandbox.Spec) { s.Argv[0] = "/no/such/program" },
		"/no/such/folder":  func(s *sandbox.Spec) { s.Dir = "/no/such/folder" },
	} {
		spec := shell("true")
		spoil(&spec)
		c, err := d.Create(patience(t), spec)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Start(patience(t))
		var failed *sandbox.StartError
		if !errors.As(err, &failed) || failed.Path != name || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
		if err := c.Start(patience(t)); !errors.Is(err, sandbox.ErrState) {
			t.Errorf("start again: %v", err)
		}
		if err := c.Destroy(); err != nil {
			t.Error(err)
		}
	}
}

func cancelledStart(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(patience(t))
	c, err := s.open(t).Create(ctx, shell("true"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := c.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func closeDestroysAll(t *testing.T, s *suite) {
	d := s.open(t)
	r, w := pipe(t)
	for i := range 5 {
		spec := shell("trap '' TERM; while :; do sleep 1000; done")
		spec.Files = []*os.File{w}
		spec.ID = fmt.Sprintf("close-%d", i)
		start(t, d, spec)
	}
	_ = w.Close()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_ = r.SetReadDeadline(time.Now().Add(wait))
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("%d, %v", n, err)
	}
}
