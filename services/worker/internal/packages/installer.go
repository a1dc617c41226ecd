package packages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Installer runs uv where it is present, else the interpreter's pip. Only wheels
// are installed: building a source distribution would run its code outside of
// every sandbox.
type Installer struct {
	// Python is the interpreter that the packages are for.
	Python string
	// UV is the path of uv; empty: pip.
	UV string
	// CacheDir holds the wheel cache.
	CacheDir string
	// Args are added to the installer's command line, say an index of your own.
	Args []string
}

// Install puts requirements into folder.
// Errors: *InstallError, ctx's cause.
func (i Installer) Install(ctx context.Context, folder string, requirements []string) error {
	cmd := i.command(ctx, folder, requirements)
	output := &tail{limit: 4 << 10}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Env = append(os.Environ(), "PIP_CACHE_DIR="+filepath.Join(i.CacheDir, "pip"), "UV_CACHE_DIR="+filepath.Join(i.CacheDir, "uv"), "PYTHONDONTWRITEBYTECODE=1")
	// It dies with this process: the kernel's signal comes at the end of the thread that
	// started it, which is this one until it has ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &InstallError{requirements, "it took too long; " + output.String()}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &InstallError{requirements, fmt.Sprintf("%s (%v)", bytes.TrimSpace(output.Bytes()), err)}
}

func (i Installer) command(ctx context.Context, folder string, requirements []string) *exec.Cmd {
	args := []string{"-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--quiet", "--root-user-action=ignore"}
	program := i.Python
	if i.UV != "" {
		program, args = i.UV, []string{"pip", "install", "--python", i.Python, "--quiet"}
	}
	args = append(args, "--only-binary=:all:", "--target", folder)
	args = append(args, i.Args...)
	args = append(args, "--")
	return exec.CommandContext(ctx, program, append(args, requirements...)...)
}

// tail keeps the last bytes that were written.
type tail struct {
	bytes.Buffer
	limit int
}

func (t *tail) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if over := t.Len() - t.limit; over > 0 {
		t.Next(over)
	}
	return n, err
}
