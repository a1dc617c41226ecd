//go:build linux && amd64

package process_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/hearth-run/hearth/sandbox"
)

// TestMaskedProc: where parts of /proc are hidden, as they are inside most containers,
// a process without rights cannot mount another; containers start all the same, with
// an empty /proc. The test hides one folder in a mount namespace of its own, and runs
// itself there as nobody.
func TestMaskedProc(t *testing.T) {
	if os.Getenv("HEARTH_MASKED_PROC") != "" {
		withoutProc(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Log("only root can hide a part of /proc")
		return
	}
	binary, scratch := forNobody(t)
	cmd := exec.Command("/bin/sh", "-c", `mount --make-rprivate / && mount -t tmpfs hidden /proc/irq &&
		exec setpriv --reuid=65534 --regid=65534 --clear-groups "$0" -test.run='^TestMaskedProc$' -test.v`, binary)
	cmd.Dir = scratch
	cmd.Env = []string{"TMPDIR=" + scratch, "HOME=" + scratch, "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HEARTH_MASKED_PROC=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "without /proc") {
		t.Errorf("%v\n%s", err, out)
	}
}

func withoutProc(t *testing.T) {
	d := openDriver(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Create(t.Context(), sandbox.Spec{
		ID: "masked", Argv: []string{"/bin/sh", "-c", "echo /proc/* && id -u"}, Binds: sandbox.SystemBinds(), Stdout: w, Stderr: w,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if out := drain(t, r); out != "/proc/*\n2000000000" {
		t.Errorf("%q", out)
	}
	t.Log("ran without /proc")
}
