package adapters_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/adapters/bash"
	"github.com/hearth-run/hearth/adapters/node"
	"github.com/hearth-run/hearth/adapters/python"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/adapters/runtimetest"
	"github.com/hearth-run/hearth/internal/kit/group"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

// serverEnv makes the test binary a Runtime Server: "LANGUAGE SOCKET WORKSPACE".
// The servers are processes of their own, so that they can be killed.
const serverEnv = "CONFORMANCE_SERVER"

const loadTimeout = 10 * time.Second

func TestMain(m *testing.M) {
	if spec := os.Getenv(serverEnv); spec != "" {
		if err := serveLanguage(strings.Fields(spec)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func serveLanguage(spec []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	language, err := newLanguage(ctx, spec[0], spec[2], log)
	if err != nil {
		return err
	}
	cfg := runtimeserver.Default(spec[2])
	cfg.LoadTimeout = loadTimeout
	server, err := runtimeserver.New(cfg, runtimeserver.Deps{Log: log, Language: language})
	if err != nil {
		return err
	}
	rpc, err := serve.NewConnect(log)
	if err != nil {
		return err
	}
	server.Register(rpc)
	edge, err := serve.New(serve.Config{Listen: "unix:" + spec[1], Ready: server.Ready}, log, rpc)
	if err != nil {
		return err
	}
	var g group.Group
	g.Add("runtime server", server.Run)
	g.Add("edge", edge.Run)
	return g.Run(ctx)
}

func newLanguage(ctx context.Context, name, workspace string, log *slog.Logger) (runtimeserver.Language, error) {
	switch name {
	case "python":
		return python.New(ctx, python.Config{Interpreter: "python3", Cache: filepath.Join(workspace, "cache")}, python.Deps{Log: log})
	case "bash":
		return bash.New(bash.Config{})
	case "node":
		return node.New("")
	}
	return nil, fmt.Errorf("no language %q", name)
}

// victim is a Runtime Server that may be killed.
type victim struct {
	spec   string
	stderr *bytes.Buffer
	mu     sync.Mutex // guards cmd
	cmd    *exec.Cmd
}

func (v *victim) start() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cmd = exec.Command(os.Args[0])
	v.cmd.Env = append(os.Environ(), serverEnv+"="+v.spec, "SECRET_OF_THE_SERVER=x")
	v.cmd.Stderr = v.stderr
	v.cmd.WaitDelay = 10 * time.Second
	return v.cmd.Start()
}

// end signals the server and waits for it.
func (v *victim) end(sig os.Signal) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.cmd.Process.Signal(sig); err != nil {
		return err
	}
	err := v.cmd.Wait()
	if sig == os.Kill && errors.As(err, new(*exec.ExitError)) {
		return nil
	}
	return err
}

func (v *victim) restart(context.Context) error {
	return errors.Join(v.end(os.Kill), v.start())
}

// Our servers conform, over both protocols.
func TestConformance(t *testing.T) {
	for _, language := range []string{"python", "bash", "node"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel() // most of the time a case waits for a deadline
			conform(t, language)
		})
	}
}

func conform(t *testing.T, language string) {
	set, err := runtimetest.Builtin(language)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	workspace := t.TempDir()
	v := &victim{spec: language + " " + socket + " " + workspace, stderr: &bytes.Buffer{}}
	if err := v.start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := v.end(syscall.SIGTERM); err != nil {
			t.Errorf("stop the server: %v", err)
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", v.stderr)
		}
	}()
	target := runtimetest.Target{
		URL: "unix:" + socket, Workspace: workspace, Fixtures: set, Restart: v.restart,
		Times: runtimetest.Times{Load: loadTimeout, Patience: loadTimeout},
	}
	for _, protocol := range []runtimetest.Protocol{runtimetest.Connect, runtimetest.GRPC} {
		target.Protocols = []runtimetest.Protocol{protocol}
		options := runtimetest.Options{Soon: 30 * time.Second, Storm: 300, Parallel: 6}
		if testing.Short() && protocol == runtimetest.GRPC {
			options.Only = []string{"FR-REG", "FR-ERR", "FR-TIM", "RT-BAS"} // what could differ by protocol
		}
		results, err := runtimetest.Run(t.Context(), target, options)
		if err != nil {
			t.Fatal(err)
		}
		report(t, results)
	}
}

func report(t *testing.T, results []runtimetest.Result) {
	t.Helper()
	for _, r := range results {
		if r.Verdict == runtimetest.Fail {
			t.Errorf("%s %s over %s (%v): %s\n\texpected %s\n\tsaw %s", r.Level, r.ID, r.Protocol, r.Took.Round(time.Millisecond), r.Claim, r.Expected, r.Seen)
		}
	}
	t.Log(runtimetest.Summary(results))
}
