//go:build linux && amd64

package process_test

import (
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
)

// startShell starts a line of sh as a template, with the end of a pipe as descriptor 3.
func startShell(t *testing.T, d *process.Driver, id, line string) (*process.Template, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	template, err := d.StartTemplate(process.TemplateSpec{ID: id, Path: "/bin/sh", Argv: []string{"sh", "-c", line},
		Env: []string{"A=1"}, Files: []*os.File{w}, Memory: 64 << 20})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return template, r
}

// joined is a line of sh that ends once the process is in its control group.
func joined(id string) string { return "until grep -q /" + id + "$ /proc/$$/cgroup; do :; done; " }

// TestTemplate: it has what it was given, leads a session, and when it ends, however,
// so does everything of its process group; its name and its control group are free then.
func TestTemplate(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("templates need root's rights; StartTemplate refuses without (TestEntryGivenUp)")
		return
	}
	t.Cleanup(func() { goleak.VerifyNone(t) })
	d := openDriver(t)
	killed, out := startShell(t, d, "one", `echo $A $$ $(cut -d ' ' -f 6 /proc/$$/stat) $(readlink /proc/$$/fd/4) >&3; sleep 1000 & wait`)
	line := make([]byte, 200)
	n, err := out.Read(line)
	fields := strings.Fields(string(line[:n]))
	if err != nil || len(fields) != 4 || fields[0] != "1" || fields[1] != fields[2] || !strings.HasPrefix(fields[3], "net:[") {
		t.Errorf("%v, %v", fields, err)
	}
	if _, err := d.StartTemplate(process.TemplateSpec{ID: "one", Path: "/bin/true", Argv: []string{"true"}}); !errors.Is(err, sandbox.ErrExists) {
		t.Errorf("a name that is taken: %v", err)
	}
	if _, err := d.Create(t.Context(), sandbox.Spec{ID: "one", Argv: []string{"/x"}}); !errors.Is(err, sandbox.ErrExists) {
		t.Errorf("a container of the same name: %v", err)
	}
	for range 2 {
		if err := killed.Kill(); err != nil {
			t.Error(err)
		}
	}
	if rest := drain(t, out); rest != "" { // ends when the sleep has
		t.Errorf("%q", rest)
	}
	ended, out := startShell(t, d, "one", joined("one")+"sleep 1000 & exit 0")
	<-ended.Ended()
	drain(t, out)
	if err := syscall.Kill(ended.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("not reaped: %v", err)
	}
	left, out := startShell(t, d, "two", "sleep 1000 & wait")
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	<-left.Ended()
	drain(t, out)
	if _, err := d.StartTemplate(process.TemplateSpec{ID: "three", Path: "/bin/true", Argv: []string{"true"}}); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
	if found, err := process.Leftovers(d.Root()); err != nil || len(found) > 0 {
		t.Errorf("left: %v, %v", found, err)
	}
}

// TestTemplateThatIsNone: a program that is not there, and too little memory, are told
// and leave nothing.
func TestTemplateThatIsNone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("templates need root's rights")
		return
	}
	d := openDriver(t)
	if _, err := d.StartTemplate(process.TemplateSpec{ID: "none", Path: "/no/such/program", Argv: []string{"x"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	hungry, _ := startShell(t, d, "none", joined("none")+"head -c 500000000 /dev/zero | tail -c 400000000 >/dev/null")
	<-hungry.Ended()
	if n := hungry.OOMKills(); n != 1 {
		t.Errorf("%d OOM kills", n)
	}
	if err := hungry.Kill(); err != nil {
		t.Error(err)
	}
}

// TestAdoptTemplate: a child of this process becomes a template of the driver's, which
// reaps it; one whose name is taken is ended.
func TestAdoptTemplate(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("templates need root's rights")
		return
	}
	runtime.LockOSThread() // the children's parent
	defer runtime.UnlockOSThread()
	d := openDriver(t)
	lives, out := startChild(t)
	adopted, err := d.AdoptTemplate(lives, "one", 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	second, rest := startChild(t)
	if _, err := d.AdoptTemplate(second, "one", 0); !errors.Is(err, sandbox.ErrExists) {
		t.Errorf("%v", err)
	}
	drain(t, rest)
	if err := adopted.Kill(); err != nil {
		t.Error(err)
	}
	drain(t, out)
	for _, pid := range []int{lives, second} {
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
			t.Errorf("process %d was not reaped: %v", pid, err)
		}
	}
}

// startChild starts a process and the reading end of what only it holds.
func startChild(t *testing.T) (int, io.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Files: []*os.File{nil, w}})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	pid := p.Pid
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	return pid, r
}
