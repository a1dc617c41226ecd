package daemon_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/hearth-run/hearth/internal/kit/daemon"
)

// service says on standard output what it was told, and that it ends.
type service struct {
	Word string `default:"nothing"`
	Fail bool
}

func (s service) Run(ctx context.Context, _ *slog.Logger) error {
	if s.Fail {
		return errors.New("no luck")
	}
	fmt.Println("told", s.Word)
	<-ctx.Done()
	fmt.Println("ends")
	return nil
}

func TestMain(m *testing.M) {
	if os.Getenv("BE_A_DAEMON") != "" {
		daemon.Main[service]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func process(t *testing.T, environ []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), "BE_A_DAEMON=1"), environ...)
	return cmd
}

func TestSignalEndsIt(t *testing.T) {
	cmd := process(t, []string{"HEARTH_WORD=this"})
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	hear := func(want string) {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("it said %q, not %q: %v", lines.Text(), want, lines.Err())
		}
	}
	hear("told this")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	hear("ends")
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		environ, args []string
		want          string
	}{
		"variable": {environ: []string{"HEARTH_WRD=this"}, want: "HEARTH_WRD"},
		"flag":     {args: []string{"--wrd=this"}, want: "--wrd"},
		"failure":  {args: []string{"--fail"}, want: "no luck"},
	} {
		out, err := process(t, c.environ, c.args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() == 0 || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
