package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hearth-run/hearth/bench/internal/load"
)

// target is one thing that answers a language's echo.
type target struct {
	name     string
	language string
	call     func(ctx context.Context, payload []byte) ([]byte, error)
}

// bench is one run: what was started, and where.
type bench struct {
	flags
	dir, workspace string
	// stops end what was started.
	stops []func() error
}

func measure(ctx context.Context, f flags) (err error) {
	b := &bench{flags: f}
	for _, size := range f.Sizes {
		if size < 16 || size > 1<<20 {
			return fmt.Errorf("--sizes: %d is not within 16 and 1048576", size)
		}
	}
	if b.dir, err = os.MkdirTemp("", "hearth-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	b.workspace = filepath.Join(b.dir, "workspace")
	if err := b.build(ctx); err != nil {
		return err
	}
	fmt.Printf("%s, %d cores, %s; %d × %v each, in turns, one caller\n\n", runtime.Version(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), f.Rounds, f.Lasting)
	for _, language := range f.Runtimes {
		targets, err := b.prepare(ctx, language)
		if err != nil {
			return err
		}
		if err := b.compare(ctx, targets); err != nil {
			return err
		}
	}
	return b.deadlines(ctx)
}

// close ends what was started, the last first, and removes the folder.
func (b *bench) close() error {
	var errs []error
	for i := range b.stops {
		errs = append(errs, b.stops[len(b.stops)-1-i]())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// build makes the Runtime Servers from the workspace, and finds out what
// --python really is: a name on PATH may be a script that looks for it anew each
// time, which would be measured with every process.
func (b *bench) build(ctx context.Context) error {
	if err := os.MkdirAll(b.workspace, 0o755); err != nil {
		return err
	}
	for _, language := range b.Runtimes {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", b.program(language), "./cmd/"+filepath.Base(b.program(language)))
		cmd.Dir, cmd.Stderr = filepath.Join("..", "adapters"), os.Stderr
		if _, err := os.Stat(cmd.Dir); err != nil {
			return fmt.Errorf("find the Runtime Servers: run this in the folder bench of the repository: %w", err)
		}
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build the Runtime Server for %s: %w", language, err)
		}
	}
	out, err := exec.CommandContext(ctx, b.Python, "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its path: %w", b.Python, err)
	}
	b.Python = strings.TrimSpace(string(out))
	return nil
}

func (b *bench) program(language string) string {
	return filepath.Join(b.dir, "hearth-runtime-"+language)
}

// prepare starts the three targets of a language.
func (b *bench) prepare(ctx context.Context, language string) ([]target, error) {
	e := echoes[language]
	folder, err := write(b.workspace, language, e.file, e.code)
	if err != nil {
		return nil, err
	}
	floor, err := b.startFloor(language, folder, b.dir)
	if err != nil {
		return nil, err
	}
	b.stops = append(b.stops, floor.Stop)
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	warm, err := b.function(ctx, language, folder, "warm", b.argv(language, b.workspace, b.Python)...)
	if err != nil {
		return nil, err
	}
	once, err := b.function(ctx, language, folder, "once", self, "--per-call", language, "--python", b.Python, "--socket")
	if err != nil {
		return nil, err
	}
	return []target{
		{"floor: the warm loop alone", language, floor.Call},
		{"hearth-runtime-" + language, language, warm.Call},
		{"a process per call", language, once.Call},
	}, nil
}

// argv is the command line of a real Runtime Server, up to its socket. A workspace
// has at most one server of a language.
func (b *bench) argv(language, workspace, python string) []string {
	argv := []string{b.program(language), "--workspace", workspace, "--log-format", "json"}
	if language == "python" {
		argv = append(argv, "--python", python, "--python-cache", filepath.Join(b.dir, "cache"))
	}
	return append(argv, "--listen")
}

// function starts a server, whose command line ends with its socket, and registers
// the language's echo there.
func (b *bench) function(ctx context.Context, language, folder, name string, argv ...string) (*function, error) {
	s, err := b.server(ctx, language+"-"+name, argv...)
	if err != nil {
		return nil, err
	}
	return s.register(ctx, name, folder, handlers[language], 1)
}

func (b *bench) server(ctx context.Context, name string, argv ...string) (*server, error) {
	socket := "unix:" + filepath.Join(b.dir, name+".sock")
	s, err := startServer(ctx, socket, append(argv, socket)...)
	if err == nil {
		b.stops = append(b.stops, s.Stop)
	}
	return s, err
}

// compare prints a language's table.
func (b *bench) compare(ctx context.Context, targets []target) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, targets[0].language+"\tpayload\tp50\tp99\tcalls/s\tp50 × floor\t")
	for _, size := range b.Sizes {
		results, err := b.turns(ctx, targets, payload(size))
		if err != nil {
			return err
		}
		for i, r := range results {
			fmt.Fprintf(table, "%s\t%s\t%v\t%v\t%.0f\t%.2f\t\n", targets[i].name, bytesText(size),
				r.Quantile(0.5).Round(time.Microsecond), r.Quantile(0.99).Round(time.Microsecond), r.Rate(),
				float64(r.Quantile(0.5))/float64(results[0].Quantile(0.5)))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Println()
	return nil
}

// turns measures every target once a round, so that what else the machine does
// hits all of them alike; the first round warms up and does not count.
func (b *bench) turns(ctx context.Context, targets []target, payload []byte) ([]load.Result, error) {
	results := make([]load.Result, len(targets))
	for round := range b.Rounds + 1 {
		for i, t := range targets {
			lasting := b.Lasting
			if round == 0 {
				lasting = min(lasting, time.Second/4)
			}
			r, err := load.Run(ctx, []load.Caller{t.caller(payload)}, lasting)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", t.language, t.name, err)
			}
			if round > 0 {
				results[i] = load.Merge(results[i], r)
			}
		}
	}
	return results, nil
}

// caller calls with a payload and checks that it comes back.
func (t target) caller(payload []byte) load.Caller {
	return func(ctx context.Context) error {
		answer, err := t.call(ctx, payload)
		if err == nil && !bytes.Equal(answer, payload) {
			err = fmt.Errorf("%d bytes were sent and %d others came back", len(payload), len(answer))
		}
		return err
	}
}

// payload is JSON of exactly size bytes.
func payload(size int) []byte {
	return []byte(`{"pad":"` + strings.Repeat("x", size-10) + `"}`)
}

func bytesText(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
