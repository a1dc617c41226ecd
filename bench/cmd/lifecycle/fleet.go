package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// How long a process may take to begin and to end.
const (
	beginTime = time.Minute
	endTime   = 20 * time.Second
)

// fleet is a set of processes that find each other by sockets in one folder.
type fleet struct {
	dir      string
	programs string // where they lie
	dialer   *dial.Dialer
	// running are in the order of their start.
	running []*process
}

type process struct {
	name string
	cmd  *exec.Cmd
}

func newFleet(dir string) *fleet { return &fleet{dir: dir, programs: dir, dialer: dial.New(nil)} }

func (f *fleet) address(name string) string { return "unix:" + filepath.Join(f.dir, name+".sock") }

// build makes the programs from the workspace.
func (f *fleet) build(ctx context.Context, runtimes []string) error {
	const module = "github.com/hearth-run/hearth/"
	packages := map[string]string{"hearth": module + "hearth"}
	for _, name := range runtimes {
		packages["hearth-runtime-"+name] = module + "adapters/cmd/hearth-runtime-" + name
	}
	for program, path := range packages {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(f.dir, program), path)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build %s (run this inside the workspace): %w", program, err)
		}
	}
	return nil
}

// start runs a program under a name and returns once it can take work.
func (f *fleet) start(ctx context.Context, name, program string, args ...string) error {
	if err := f.launch(name, program, args...); err != nil {
		return err
	}
	return f.ready(ctx, name)
}

func (f *fleet) launch(name, program string, args ...string) error {
	p := &process{name, exec.Command(filepath.Join(f.programs, program), append(args, "--log-level", "error")...)}
	p.cmd.Stderr = os.Stderr
	p.cmd.Env = append(os.Environ(), "GOGC=400")
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	f.running = append(f.running, p)
	return nil
}

// ready asks until a process can take work: nothing tells from outside.
func (f *fleet) ready(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, beginTime, fmt.Errorf("%s was not ready within %v", name, beginTime))
	defer cancel()
	client, base, err := f.dialer.HTTP(f.address(name), false)
	if err != nil {
		return err
	}
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		if err := ask(ctx, client, base+"/readyz"); err == nil {
			tick.Stop()
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return context.Cause(ctx)
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

// node starts a Runtime Server and the runtimed in front of it.
func (f *fleet) node(ctx context.Context, runtime string, number int) error {
	name := fmt.Sprintf("%s-%d", runtime, number)
	workspace := filepath.Join(f.dir, "workspace-"+name)
	server := "server-" + name
	if err := f.start(ctx, server, "hearth-runtime-"+runtime, "--workspace", workspace, "--listen", f.address(server)); err != nil {
		return err
	}
	return f.start(ctx, name, "hearth", "runtimed", "--runtime", runtime, "--name", name, "--listen", f.address(name),
		"--control-plane", f.address("controlplane"), "--runtime-server", f.address(server),
		"--workspace", workspace, "--data", filepath.Join(f.dir, "runtimed-"+name))
}

// controlPlane are the arguments of one with a folder of its own.
func (f *fleet) controlPlane(folder string) []string {
	return []string{"controlplane", "--data", filepath.Join(f.dir, "controlplane-"+folder), "--listen", f.address("controlplane")}
}

// pid is the process of a name that runs.
func (f *fleet) pid(name string) int {
	for _, p := range f.running {
		if p.name == name {
			return p.cmd.Process.Pid
		}
	}
	return 0
}

// kill ends one process with SIGKILL.
func (f *fleet) kill(name string) error {
	for i, p := range f.running {
		if p.name == name {
			f.running = append(f.running[:i:i], f.running[i+1:]...)
			err := p.cmd.Process.Kill()
			_ = p.cmd.Wait() // killed by us
			return err
		}
	}
	return fmt.Errorf("no process %s runs", name)
}

// stop ends every process, all at once. One that is not done in time, with all the
// functions that it holds, is killed.
func (f *fleet) stop() error {
	for _, p := range slices.Backward(f.running) {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // one that has ended says so below
	}
	late := time.AfterFunc(endTime, func() {
		for _, p := range f.running {
			_ = p.cmd.Process.Kill()
		}
	})
	var errs []error
	for _, p := range slices.Backward(f.running) {
		if err := p.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", p.name, err))
		}
	}
	killed := !late.Stop()
	f.running = nil
	if killed {
		return nil
	}
	return errors.Join(errs...)
}

func (f *fleet) close() error {
	f.dialer.Close()
	return f.stop()
}

func (f *fleet) runs() (hearthv1connect.RunServiceClient, error) {
	client, err := f.dialer.Client(f.address("controlplane"))
	if err != nil {
		return nil, err
	}
	return hearthv1connect.NewRunServiceClient(client), nil
}

func (f *fleet) routes() (hearthv1connect.RouteServiceClient, error) {
	client, err := f.dialer.Client(f.address("controlplane"))
	if err != nil {
		return nil, err
	}
	return hearthv1connect.NewRouteServiceClient(client), nil
}
