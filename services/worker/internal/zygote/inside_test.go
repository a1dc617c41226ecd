package zygote_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/services/worker/internal/zygote"
)

// look tells what a process inside sees of itself.
const look = `
import os, sys, tempfile
def opened(fd):
    try:
        return os.fstat(fd)
    except OSError:
        return None  # that of the listing
def call():
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines())
    return {
        "pid": os.getpid(), "group": os.getpgrp(), "session": os.getsid(0), "parent": os.getppid(),
        "namespaces": {name: os.readlink("/proc/self/ns/" + name) for name in ("pid", "mnt", "ipc", "uts", "net")},
        "cgroups": open("/proc/self/cgroup").read(),
        "uid": os.getresuid(), "gid": os.getresgid(), "groups": os.getgroups(),
        "seccomp": status["Seccomp"], "nnp": status["NoNewPrivs"],
        "capabilities": [status["Cap" + c] for c in ("Inh", "Prm", "Eff", "Bnd", "Amb")],
        "descriptors": {fd: os.readlink("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd") if opened(int(fd))},
        "environment": dict(os.environ), "command": open("/proc/self/cmdline").read().split("\0"),
        "modules": "hearth_marked" in sys.modules, "folder": os.getcwd(), "tmp": tempfile.gettempdir(),
        "marks": [n for n in os.listdir("/dev/shm")],
    }
`

type sight struct {
	Pid, Group, Session, Parent int
	Namespaces                  map[string]string
	Cgroups                     string
	UID, GID, Groups            []int
	Seccomp, NNP                string
	Capabilities                []string
	Descriptors                 map[string]string
	Environment                 map[string]string
	Command                     []string
	Modules                     bool
	Folder, Tmp                 string
	Marks                       []string
}

func (c *cell) look(t *testing.T) (s sight) {
	t.Helper()
	text, err := json.Marshal(c.run(t, look))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestInside: a container from a zygote has everything of its own but the imports.
func TestInside(t *testing.T) {
	w := open(t, nil)
	w.write(t, "hearth_marked", "import os, tempfile\nopen(tempfile.gettempdir() + '/mark', 'w').close()\nos.environ['LEFT'] = 'by an import'; os.environ['A'] = '2'\n")
	z := w.grow(w.root, "hearth_marked")
	t.Setenv("SECRET_OF_THE_WORKER", "s3cret")
	env := []string{"A=1", "TMPDIR=/tmp", "SECRET=of the call"}
	first := w.mustEnter(z, zygote.Begin{Env: env}).look(t)
	second := w.mustEnter(z, zygote.Begin{}).look(t)

	if first.Pid != 1 || first.Parent != 0 || first.Group != 1 || first.Session != 1 {
		t.Errorf("pid %d, parent %d, group %d, session %d: want the first process, leading a session", first.Pid, first.Parent, first.Group, first.Session)
	}
	for name, namespace := range first.Namespaces {
		for _, other := range []string{"self", strconv.Itoa(z.Facts().Pid)} {
			theirs, err := os.Readlink("/proc/" + other + "/ns/" + name)
			// The empty network is shared on purpose.
			if err != nil || (theirs == namespace) != (name == "net" && other != "self") {
				t.Errorf("%s namespace %s, that of %s is %s; %v", name, namespace, other, theirs, err)
			}
		}
		if (second.Namespaces[name] == namespace) != (name == "net") {
			t.Errorf("two containers are in %s namespaces %s and %s", name, namespace, second.Namespaces[name])
		}
	}
	if first.Cgroups == second.Cgroups || strings.Contains(first.Cgroups, "/zygote-") {
		t.Errorf("control groups %s and %s", first.Cgroups, second.Cgroups)
	}
	if first.UID[0] == second.UID[0] || slices.Contains(first.UID, 0) || slices.Contains(first.GID, 0) || len(first.Groups) != 0 {
		t.Errorf("users %v and %v, groups %v %v", first.UID, second.UID, first.GID, first.Groups)
	}
	if first.Seccomp != "2" || first.NNP != "1" || strings.Trim(strings.Join(first.Capabilities, ""), "0") != "" {
		t.Errorf("seccomp %s, no-new-privs %s, capabilities %v", first.Seccomp, first.NNP, first.Capabilities)
	}
	if !first.Modules || first.Folder != "/tmp" || first.Tmp != "/tmp" || len(first.Marks) != 0 {
		t.Errorf("imports %t, folder %s, tmp %s, in /dev/shm %v", first.Modules, first.Folder, first.Tmp, first.Marks)
	}
	if want := map[string]string{"A": "1", "TMPDIR": "/tmp", "SECRET": "of the call", "LEFT": "by an import"}; !equal(first.Environment, want) {
		t.Errorf("environment %v", first.Environment)
	}
	if want := map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "LEFT": "by an import", "A": "2"}; !equal(second.Environment, want) {
		t.Errorf("environment %v", second.Environment)
	}
	if !slices.Contains(first.Command, "zygote") {
		t.Errorf("command line %q: want the zygote's, which is no secret", first.Command)
	}
	wantDescriptors(t, first)
}

// wantDescriptors: standard streams; the executor's control socket, listener and this
// call's connection; descriptors 1 and 2 and both ends of its log's pipe.
func wantDescriptors(t *testing.T, s sight) {
	t.Helper()
	kinds := map[string]int{}
	for fd, target := range s.Descriptors {
		kind, _, _ := strings.Cut(target, ":")
		if fd == "0" && target != "/dev/null" {
			t.Errorf("descriptor 0 is %s", target)
		}
		kinds[kind]++
	}
	if !equal(kinds, map[string]int{"/dev/null": 1, "socket": 3, "pipe": 4}) {
		t.Errorf("descriptors %v", s.Descriptors)
	}
}

func equal[V comparable](a, b map[string]V) bool {
	for key, value := range a {
		if b[key] != value {
			return false
		}
	}
	return len(a) == len(b)
}

// TestProcFilesOfItsOwnPast: what /proc would show of the process's memory and of the
// environment that it began with, which is the zygote's.
func TestProcFilesOfItsOwnPast(t *testing.T) {
	w := open(t, nil)
	c := w.mustEnter(w.root, zygote.Begin{Env: []string{"SECRET=of the call"}})
	got := c.run(t, `
import os, subprocess
def call():
    told = {}
    for name in ("environ", "mem", "auxv"):
        try:
            told[name] = open("/proc/self/" + name, "rb").read(4096).decode("latin-1")
        except OSError as error:
            told[name] = error.strerror
    told["child"] = subprocess.run(["cat", "/proc/self/environ"], capture_output=True, text=True).stdout
    return told
`).(map[string]any)
	if got["environ"] != "Permission denied" || got["mem"] != "Permission denied" {
		t.Errorf("%q", got)
	}
	if got["child"] != "SECRET=of the call\x00" {
		t.Errorf("a program that it starts has %q", got["child"])
	}
}

// TestSiblingsShareNoRandomness: what 200 containers of one zygote draw is all
// different, although the generators were seeded, and used, before they were forked.
func TestSiblingsShareNoRandomness(t *testing.T) {
	w := open(t, nil)
	modules := []string{"random", "uuid", "ssl", "tempfile", "hearth_seeded"}
	w.write(t, "hearth_seeded", "import random, ssl, uuid\nrandom.seed(7); ssl.RAND_bytes(16); uuid.uuid1(); uuid.uuid4()\ntry:\n    import numpy.random; numpy.random.seed(7)\nexcept ModuleNotFoundError: pass\n")
	z := w.grow(w.root, modules...)
	const source = `
import random, secrets, ssl, sys, tempfile, uuid
def call():
    drawn = {"uuid4": str(uuid.uuid4()), "uuid1": str(uuid.uuid1()), "random": random.random(), "ssl": ssl.RAND_bytes(16).hex(),
        "secrets": secrets.token_hex(), "tempfile": next(tempfile._get_candidate_names())}
    if "numpy" in sys.modules:
        drawn["numpy"] = sys.modules["numpy"].random.random()
    return drawn
`
	var mu sync.Mutex
	seen := map[string]map[any]bool{}
	draw := func() error {
		c, err := w.enter(z, zygote.Begin{}, nil)
		if err != nil {
			return err
		}
		answer, err := c.ask(source)
		if err != nil {
			return errors.Join(err, c.end())
		}
		value, err := answer()
		if err != nil {
			return errors.Join(err, c.end())
		}
		mu.Lock()
		defer mu.Unlock()
		for name, number := range value.(map[string]any) {
			if seen[name] == nil {
				seen[name] = map[any]bool{}
			}
			seen[name][number] = true
		}
		return c.end()
	}
	const siblings, callers = 200, 8
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			for range siblings / callers {
				if err := draw(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	generators := 6
	if exec.Command(w.Python, "-c", "import numpy").Run() == nil {
		generators++
	}
	if len(seen) != generators {
		t.Errorf("%d generators were asked, not %d", len(seen), generators)
	}
	for name, numbers := range seen {
		if len(numbers) != siblings {
			t.Errorf("%s: %d different of %d", name, len(numbers), siblings)
		}
	}
}

// TestHashSeedIsTheTrees: texts hash alike in all containers of a tree, which is what
// docs/security.md says.
func TestHashSeedIsTheTrees(t *testing.T) {
	w := open(t, nil)
	const source = "def call(): return hash('text')"
	one, two := w.mustEnter(w.root, zygote.Begin{}).run(t, source), w.mustEnter(w.grow(w.root, "decimal"), zygote.Begin{}).run(t, source)
	if one != two {
		t.Errorf("%v and %v", one, two)
	}
}

// TestWallThatCannotStand: a step that fails is told as its wall, nothing runs, and the
// zygote goes on.
func TestWallThatCannotStand(t *testing.T) {
	w := open(t, nil)
	_, err := w.enter(w.root, zygote.Begin{}, func(s *sandbox.Spec) { s.Dir = "/no/such/folder" })
	var start *sandbox.StartError
	if !errors.As(err, &start) || start.Path != "/no/such/folder" {
		t.Errorf("%v", err)
	}
	_, err = w.enter(w.root, zygote.Begin{}, func(s *sandbox.Spec) { s.Scratch = append(s.Scratch, sandbox.Scratch{Target: "/usr/none", Bytes: 1}) })
	var wall *sandbox.WallError
	if !errors.As(err, &wall) || wall.Wall != "root-file-system" {
		t.Errorf("%v", err)
	}
	_, err = w.enter(w.root, zygote.Begin{Env: []string{"A=" + strings.Repeat("x", 1<<16)}}, nil)
	if err == nil || !strings.Contains(err.Error(), "env: 65") {
		t.Errorf("%v", err)
	}
	if got := w.mustEnter(w.root, zygote.Begin{}).run(t, "def call(): return 7"); got != 7.0 {
		t.Errorf("%v", got)
	}
}
