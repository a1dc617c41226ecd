//go:build linux && amd64

package process_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// nobody is a user that owns nothing, under whose id the suite runs once more.
const nobody = 65534

// TestSuiteUnprivileged runs the suite in a process without any right: user
// namespaces have to do, and there are no control groups. It is the same test binary,
// copied to where that user may execute it; the walls are the same but for those that
// the factory leaves out.
func TestSuiteUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("this process has no rights to give up: TestSuite ran without them already")
		return
	}
	binary, scratch := forNobody(t)
	cmd := exec.Command(binary, "-test.run=^Test(Suite|Probe|EntryGivenUp)$", "-test.timeout=4m", "-test.v")
	cmd.Dir = scratch
	cmd.Env = []string{"TMPDIR=" + scratch, "HOME=" + scratch, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// forNobody is this test binary and an empty folder, both of use to that user.
func forNobody(t *testing.T) (binary, scratch string) {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	scratch = filepath.Join(dir, "tmp")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(scratch, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "process.test")
	copyExecutable(t, binary)
	return binary, scratch
}

func copyExecutable(t *testing.T, to string) {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := io.Copy(f, from); err != nil {
		t.Fatal(err)
	}
}
