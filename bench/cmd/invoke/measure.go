package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hearth-run/hearth/bench/internal/load"
	"github.com/hearth-run/hearth/bench/internal/peer"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// target is one thing to measure; it has a URL for each caller, since a function
// takes one call at a time.
type target struct {
	name string
	urls []string
}

func measure(ctx context.Context, f flags) (err error) {
	dir, err := os.MkdirTemp("", "hearth-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := peer.Build(ctx, f.Hearth, dir)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	echo, err := peer.Start(ctx, []string{"echo"}, self, "--echo")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, echo.Stop()) }()
	hearth, err := peer.Start(ctx, []string{"gateway", "controlplane"}, program, "up", "--log-level", "warn",
		"--data", filepath.Join(dir, "data"), "--gateway", "127.0.0.1:0", "--control-plane", "127.0.0.1:0", "--runtimes", strings.Join(f.Runtimes, ","), "--router", "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hearth.Stop()) }()
	targets, err := prepare(ctx, f, echo, hearth)
	if err != nil {
		return err
	}
	return compare(ctx, f, targets)
}

func prepare(ctx context.Context, f flags, echo, hearth *peer.Process) ([]target, error) {
	most := slices.Max(f.Callers)
	targets := []target{{"net/http JSON echo", slices.Repeat([]string{echo.Doors["echo"]}, most)}}
	dialer := dial.New(nil)
	defer dialer.Close()
	for _, fn := range peer.Functions() {
		if !slices.Contains(f.Runtimes, fn.Runtime) {
			continue
		}
		names, err := peer.Create(ctx, dialer, hearth.Doors["controlplane"], fn, most)
		if err != nil {
			return nil, err
		}
		t := target{name: fn.Runtime + " function"}
		for _, name := range names {
			t.urls = append(t.urls, hearth.Doors["gateway"]+"/v1/namespaces/default/runs/"+name+":invoke")
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// compare measures the targets in turns, so that what else the machine does hits
// all of them alike.
func compare(ctx context.Context, f flags, targets []target) error {
	fmt.Printf("%s, %d cores, %s; %d bytes, %d × %v each, in turns\n\n", runtime.Version(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), f.Payload, f.Rounds, f.Lasting)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: slices.Max(f.Callers), DisableCompression: true}}
	defer client.CloseIdleConnections()
	payload := []byte(`{"pad":"` + string(bytes.Repeat([]byte("x"), max(f.Payload-10, 0))) + `"}`)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "target\tcallers\tp50\tp99\trequests/s\tp50 × echo\t")
	for _, callers := range f.Callers {
		results, err := turns(ctx, f, targets, callers, client, payload)
		if err != nil {
			return err
		}
		floor := results[0].Quantile(0.5)
		for i, r := range results {
			fmt.Fprintf(table, "%s\t%d\t%v\t%v\t%.0f\t%.2f\t\n", targets[i].name, callers,
				r.Quantile(0.5).Round(time.Microsecond), r.Quantile(0.99).Round(time.Microsecond), r.Rate(), float64(r.Quantile(0.5))/float64(floor))
		}
	}
	return table.Flush()
}

// turns measures every target once a round; the first round warms up and does
// not count.
func turns(ctx context.Context, f flags, targets []target, callers int, client *http.Client, payload []byte) ([]load.Result, error) {
	results := make([]load.Result, len(targets))
	for round := range f.Rounds + 1 {
		for i, t := range targets {
			lasting := f.Lasting
			if round == 0 {
				lasting = min(lasting, time.Second/2)
			}
			list := make([]load.Caller, callers)
			for c := range list {
				list[c] = peer.Post(client, t.urls[c], payload)
			}
			r, err := load.Run(ctx, list, lasting)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			if round > 0 {
				results[i] = load.Merge(results[i], r)
			}
		}
	}
	return results, nil
}
