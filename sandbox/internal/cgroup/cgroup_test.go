//go:build linux && amd64

package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	v1Mounts = `30 24 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw,nsdelegate
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
34 30 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
`
	v1Own = "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n0::/y\n"
)

func TestParseLayout(t *testing.T) {
	l := parseLayout(strings.NewReader(v1Mounts), strings.NewReader(v1Own))
	for controller, want := range map[string]string{
		"memory": "/sys/fs/cgroup/memory", "cpu": "/sys/fs/cgroup/cpu,cpuacct",
		"cpuacct": "/sys/fs/cgroup/cpu,cpuacct", "unified": "/sys/fs/cgroup/unified", "pids": "",
	} {
		if got := l.mounts[controller]; got != want {
			t.Errorf("%s mounted at %q, want %q", controller, got, want)
		}
	}
	if l.own["memory"] != "/docker/abc" || l.own["cpuacct"] != "/docker/abc" || l.own["unified"] != "/y" {
		t.Errorf("own %v", l.own)
	}
}

// tree is a folder that looks like a version 2 hierarchy; the kernel's part (files
// that appear with a group) is played where a test needs it.
func tree(t *testing.T) (Layout, string) {
	t.Helper()
	root := t.TempDir()
	for _, at := range []string{"", "svc", "svc/own"} {
		write(t, filepath.Join(root, at), "cgroup.subtree_control", "")
	}
	return Layout{mounts: map[string]string{"unified": root}, own: map[string]string{"unified": "/svc/own"}}, root
}

func write(t *testing.T, dir, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestVersionTwo(t *testing.T) {
	l, root := tree(t)
	p, err := Find(l, "hearth-x")
	if err != nil {
		t.Fatal(err)
	}
	if dir := filepath.Join(root, "svc/own/hearth-x"); !p.V2 || p.Dirs["unified"] != dir || !p.Has().Memory {
		t.Fatalf("%+v", p)
	}
	if got := read(t, root, "svc/own/hearth-x/cgroup.subtree_control"); got != "+memory +pids +cpu" {
		t.Errorf("handed on %q", got)
	}
	g, err := p.Make("c1", Limits{Memory: 1000, Pids: 7, MilliCPU: 1500})
	if err != nil {
		t.Fatal(err)
	}
	dir := g.dirs["unified"]
	for file, want := range map[string]string{"memory.max": "1000", "memory.swap.max": "0", "pids.max": "7", "cpu.max": "150000 100000"} {
		if got := read(t, dir, file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	write(t, dir, "memory.current", "500\n")
	write(t, dir, "memory.peak", "800\n")
	write(t, dir, "cpu.stat", "usage_usec 1500\nuser_usec 9\n")
	write(t, dir, "memory.events", "low 0\nhigh 3\nmax 1\noom 2\noom_kill 2\n")
	write(t, dir, "pids.current", "3\n")
	if got, want := g.Stats(), (Stats{500, 800, 1000, 1500 * time.Microsecond, 2, 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := g.LimitMemory(2000); err != nil || read(t, dir, "memory.max") != "2000" {
		t.Errorf("%v", err)
	}
	if err := g.Kill(); err != nil || read(t, dir, "cgroup.kill") != "1" {
		t.Errorf("%v", err)
	}
}

func TestVersionTwoTellsOfPressure(t *testing.T) {
	l, _ := tree(t)
	p, err := Find(l, "hearth-x")
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Make("c1", Limits{Memory: 1000})
	if err != nil {
		t.Fatal(err)
	}
	write(t, g.dirs["unified"], "memory.events", "high 0\n")
	w, err := g.WatchMemory()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Rearm(1000); err != nil || read(t, g.dirs["unified"], "memory.high") != "900" {
		t.Errorf("%v", err)
	}
	told := make(chan bool)
	go func() {
		for w.Next() {
			told <- true
		}
		close(told)
	}()
	write(t, g.dirs["unified"], "memory.events", "high 1\n")
	if !<-told {
		t.Error("closed")
	}
	if got := read(t, g.dirs["unified"], "memory.high"); got != "max" {
		t.Errorf("still throttled at %s", got)
	}
	w.Close()
	for range told {
	}
}

// TestNothingWritable: the error names what was tried.
func TestNothingWritable(t *testing.T) {
	l := Layout{mounts: map[string]string{"unified": "/nonexistent"}, own: map[string]string{"unified": "/a/b"}}
	p, err := Find(l, "hearth-x")
	if p != nil || err == nil || !strings.Contains(err.Error(), "cgroup /a/b") || !strings.Contains(err.Error(), "cgroup /a:") {
		t.Errorf("%v, %v", p, err)
	}
	if has := p.Has(); has != (Controllers{}) {
		t.Errorf("%+v", has)
	}
	p, err = Find(Layout{mounts: map[string]string{"memory": "/nonexistent"}}, "x")
	if p != nil || err == nil || !strings.Contains(err.Error(), "pids is not mounted") {
		t.Errorf("%v, %v", p, err)
	}
}
