package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hearth-run/hearth/bench/internal/peer"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/gen/hearth/v1/hearthv1connect"
	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/internal/kit/dial"
)

// house is a hearth with executions.
type house struct {
	process *peer.Process
	dialer  *dial.Dialer
	router  serverlessconnect.ProxyServiceClient
	zygotes hearthv1connect.ZygoteServiceClient
	data    string
}

// open starts hearth with so many containers ahead at most of each zygote, and waits
// until its zygotes stand.
func open(ctx context.Context, program, data string, pool int) (*house, error) {
	process, err := peer.Start(ctx, []string{"router"}, program, "up", "--log-level", "warn", "--data", data,
		"--gateway", "127.0.0.1:0", "--control-plane", "127.0.0.1:0", "--router", "127.0.0.1:0", "--runtimes", "",
		"--worker-env-package", "numpy==2.3.3", "--worker-env-package", "pandas==2.3.3", "--worker-zygote", "numpy,pandas",
		"--worker-zygote-pool", strconv.Itoa(pool), "--worker-zygote-memory", strconv.Itoa(1<<30), "--execution-memory", strconv.Itoa(64<<30))
	if err != nil {
		return nil, err
	}
	h := &house{process: process, dialer: dial.New(nil), data: data}
	if err = h.dial(); err == nil {
		err = h.warm(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, h.stop())
	}
	return h, nil
}

func (h *house) dial() error {
	streams, err := h.dialer.Streams(h.process.Doors["router"])
	if err != nil {
		return err
	}
	calls, err := h.dialer.Client(h.process.Doors["router"])
	h.router, h.zygotes = serverlessconnect.NewProxyServiceClient(streams), hearthv1connect.NewZygoteServiceClient(calls)
	return err
}

// warm makes a call, which waits for the worker, and grows the zygote.
func (h *house) warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for {
		err := call(ctx, h.router, functions[0], true, "", newSeen())
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), "being prepared") || ctx.Err() != nil {
			return err
		}
	}
	_, err := h.zygotes.WarmZygote(ctx, &hearthv1.WarmZygoteRequest{Modules: functions[1].imports})
	return err
}

func (h *house) stop() error {
	h.dialer.Close()
	return h.process.Stop()
}

// cpu is what hearth has used, with all that it ran and that has ended.
func (h *house) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.process.PID()))
	if err != nil {
		return 0
	}
	_, fields, _ := strings.Cut(string(text), ") ")
	var sum time.Duration
	for _, field := range strings.Fields(fields)[11:15] { // its own, and its children's
		ticks, _ := strconv.Atoi(field)
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	return sum
}

// idle reads the memory of idle containers that their processes share with nobody.
func (h *house) idle(ctx context.Context) (string, error) {
	var z *hearthv1.Zygote
	zygotes := map[int]bool{}
	res, err := h.zygotes.ListZygotes(ctx, &hearthv1.ListZygotesRequest{})
	if err != nil {
		return "", err
	}
	for _, candidate := range res.GetZygotes() {
		zygotes[int(candidate.GetPid())] = true
		if len(candidate.GetModules()) > 0 {
			z = candidate
		}
	}
	if z.GetPooled() == 0 {
		return "none stands ready", nil
	}
	private, n, err := privateOf(h.data, zygotes)
	if err != nil || n == 0 {
		return "", fmt.Errorf("read the memory of containers: %d found: %w", n, err)
	}
	return fmt.Sprintf("of %d containers that are idle, in sessions or before the first call, each has %.1f MiB private; %d of them stand ready for numpy and pandas. The zygote: %d MiB private, %d MiB shared, its imports took %v",
		n, mib(private/int64(n)), z.GetPooled(), z.GetPrivateBytes()>>20, z.GetSharedBytes()>>20, z.GetImportTime().AsDuration().Round(time.Millisecond)), nil
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// privateOf sums the private memory of the processes that run out of a data folder's
// worker and are no zygotes.
func privateOf(data string, zygotes map[int]bool) (sum int64, n int, err error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, 0, err
	}
	for _, file := range lines {
		line, err := os.ReadFile(file)
		pid, notPid := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil || notPid != nil || zygotes[pid] || !strings.Contains(string(line), filepath.Join(data, "worker", "pyrunner")) {
			continue
		}
		rollup, err := os.ReadFile(filepath.Join(filepath.Dir(file), "smaps_rollup"))
		if err != nil {
			continue
		}
		n++
		for row := range strings.Lines(string(rollup)) {
			var kib int64
			if name, rest, _ := strings.Cut(row, ":"); strings.HasPrefix(name, "Private_") {
				if _, err := fmt.Sscan(rest, &kib); err == nil {
					sum += kib << 10
				}
			}
		}
	}
	return sum, n, nil
}
