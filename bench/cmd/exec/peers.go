package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed peers.py
var peerScript string

// requirements of the peers' environment, pinned.
var requirements = []string{"dask==2025.9.1", "distributed==2025.9.1", "numpy==2.3.3", "pandas==2.3.3"}

// peers measures what isolates nothing, in an environment of its own.
func peers(ctx context.Context, f flags, dir string) error {
	fmt.Println("\nbeside it, without isolation (the same processes serve all calls):")
	python, err := environment(ctx, filepath.Join(dir, "peers"))
	if err != nil {
		fmt.Printf("not measured: %v\n", err)
		return nil
	}
	callers := make([]string, len(f.Callers))
	for i, n := range f.Callers {
		callers[i] = strconv.Itoa(n)
	}
	cmd := exec.CommandContext(ctx, python, "-c", peerScript, strconv.FormatFloat(f.Lasting.Seconds(), 'f', 2, 64), strings.Join(callers, ","))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.WaitDelay = 10 * time.Second
	return cmd.Run()
}

// environment makes a virtual environment once.
func environment(ctx context.Context, folder string) (string, error) {
	python := filepath.Join(folder, "bin", "python")
	if exec.CommandContext(ctx, python, "-c", "import distributed, pandas").Run() == nil {
		return python, nil
	}
	if out, err := exec.CommandContext(ctx, "python3", "-m", "venv", folder).CombinedOutput(); err != nil {
		return "", fmt.Errorf("make an environment for the peers: %w: %s", err, out)
	}
	install := append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, requirements...)
	if out, err := exec.CommandContext(ctx, python, install...).CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("install %s: %w", strings.Join(requirements, " "), err), errors.New(string(out[max(0, len(out)-500):])))
	}
	return python, nil
}
