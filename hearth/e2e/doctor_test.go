package e2e

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// The doctor's table has one line a wall and says why one does not stand; without
// rights a required one is missing, and that is the exit code.
func TestDoctor(t *testing.T) {
	for name, user := range map[string]*syscall.Credential{"as we are": nil, "as nobody": {Uid: 65534, Gid: 65534}} {
		if user != nil && os.Geteuid() != 0 {
			continue // we are nobody in particular already
		}
		t.Run(name, func(t *testing.T) {
			cmd := command("doctor")
			if user != nil {
				cmd = nobody(t, user, "doctor")
			}
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			missing := 0
			for line := range strings.Lines(string(out)) {
				fields := strings.Fields(line)
				if len(fields) < 3 || fields[1] != "no" && fields[1] != "yes" || fields[2] != "no" && fields[2] != "yes" {
					continue
				}
				if len(fields) < 5 {
					t.Errorf("no word about %q", line)
				}
				if fields[1] == "no" && fields[2] == "yes" {
					missing++
				}
			}
			if want := min(missing, 1); cmd.ProcessState.ExitCode() != want || user != nil && missing == 0 {
				t.Errorf("exit code %d with %d walls missing\n%s", cmd.ProcessState.ExitCode(), missing, out)
			}
			if strings.Count(string(out), "WALL") != 1 || !strings.Contains(string(out), "seccomp") {
				t.Errorf("%s", out)
			}
		})
	}
}

// nobody is the command as another user, who cannot reach the test's own folder.
func nobody(t *testing.T, user *syscall.Credential, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	cmd := command(args...)
	cmd.Path, cmd.ExtraFiles = "/proc/self/fd/3", []*os.File{program}
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), actAsHearth + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	return cmd
}
