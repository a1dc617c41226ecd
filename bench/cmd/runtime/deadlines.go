package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/bench/internal/load"
)

const (
	// heldTime is the deadline that calls run into.
	heldTime = 100 * time.Millisecond
	// freshLoads is how often the fresh load is measured.
	freshLoads = 5
	// pipTime is how long the making of the environment may take.
	pipTime = 90 * time.Second
)

// What a function imports where numpy is there, and where it is not.
const (
	withNumpy    = "import numpy"
	withoutNumpy = "import asyncio, decimal, email, http.client, json, sqlite3, ssl, unittest, xml.dom.minidom"
)

const heldCode = `
import time

def handle(event):
    if event == "held":
        time.sleep(60)
    return event
`

// times are what a call that ran into its deadline costs.
type times struct{ over, next, both, fresh []time.Duration }

// deadlines measures what follows a call that was ended: when its caller has its
// answer, and when the next call has its own.
func (b *bench) deadlines(ctx context.Context) error {
	if b.Deadlines <= 0 || !slices.Contains(b.Runtimes, "python") {
		return nil
	}
	python, imports, err := b.interpreter(ctx)
	if err != nil {
		return err
	}
	workspace := filepath.Join(b.dir, "deadlines")
	folder, err := write(workspace, "held", "app.py", imports+heldCode)
	if err != nil {
		return err
	}
	s, err := b.server(ctx, "deadlines", b.argv("python", workspace, python)...)
	if err != nil {
		return err
	}
	found := times{}
	var f *function
	for attempt := range freshLoads {
		begin := time.Now()
		if f, err = s.register(ctx, "held", folder, "app.handle", int32(attempt+1)); err != nil {
			return err
		}
		if attempt > 0 { // the first one reads files that are in no cache yet
			found.fresh = append(found.fresh, time.Since(begin))
		}
	}
	for range b.Deadlines {
		if err := found.once(ctx, f); err != nil {
			return err
		}
	}
	return found.print(imports)
}

// once lets a call run into its deadline and follows it with another at once.
func (t *times) once(ctx context.Context, f *function) error {
	begin := time.Now()
	_, err := f.within(ctx, heldTime, []byte(`"held"`))
	answered := time.Now()
	if connect.CodeOf(err) != connect.CodeDeadlineExceeded {
		return fmt.Errorf("a call of a minute within %v: want DeadlineExceeded, got: %w", heldTime, err)
	}
	if _, err := f.Call(ctx, []byte(`"next"`)); err != nil {
		return fmt.Errorf("the call after a deadline: %w", err)
	}
	end := time.Now()
	t.over = append(t.over, answered.Sub(begin)-heldTime)
	t.next = append(t.next, end.Sub(answered))
	t.both = append(t.both, end.Sub(begin)-heldTime)
	return nil
}

func (t *times) print(imports string) error {
	fmt.Printf("python, %s: a call ended at its deadline (%d times), and the next\n", imports, len(t.over))
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tp50\tlongest\t")
	for _, row := range []struct {
		name string
		took []time.Duration
	}{
		{"from the deadline to its answer, all processes gone", t.over},
		{"from that answer to the next call's answer", t.next},
		{"both: from the deadline to the successor's answer", t.both},
		{"for comparison: a fresh load", t.fresh},
	} {
		slices.Sort(row.took)
		r := load.Result{Took: row.took}
		fmt.Fprintf(table, "%s\t%v\t%v\t\n", row.name, r.Quantile(0.5).Round(10*time.Microsecond), r.Quantile(1).Round(10*time.Microsecond))
	}
	return table.Flush()
}

// interpreter is what runs the function, and what it imports.
func (b *bench) interpreter(ctx context.Context) (python, imports string, err error) {
	python = b.Python
	if b.Numpy {
		if python, err = b.environment(ctx); err != nil {
			return "", "", err
		}
	}
	switch err := exec.CommandContext(ctx, python, "-I", "-c", withNumpy).Run(); {
	case err == nil:
		return python, withNumpy, nil
	case b.Numpy:
		return "", "", fmt.Errorf("import numpy in the environment that was made for it: %w", err)
	case errors.As(err, new(*exec.ExitError)):
		return python, withoutNumpy, nil
	default:
		return "", "", err
	}
}

// environment makes a virtual environment with numpy in the run's folder.
func (b *bench) environment(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pipTime)
	defer cancel()
	folder := filepath.Join(b.dir, "venv")
	python := filepath.Join(folder, "bin", "python")
	for _, argv := range [][]string{
		{b.Python, "-m", "venv", folder},
		{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "numpy"},
	} {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("make an environment with numpy: %s: %w", filepath.Base(argv[0]), err)
		}
	}
	return python, nil
}
