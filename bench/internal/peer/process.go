package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Process is a program that prints a line "NAME ADDRESS" for each of its doors.
type Process struct {
	cmd *exec.Cmd
	// Doors are the addresses by name.
	Doors map[string]string
	lines chan [2]string
}

// Start runs a program and returns once it has printed every door of want.
// Errors: it cannot be started, or ends before that.
func Start(ctx context.Context, want []string, program string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.Command(program, args...), Doors: map[string]string{}, lines: make(chan [2]string)}
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			if fields := strings.Fields(scanner.Text()); len(fields) == 2 {
				p.lines <- [2]string{fields[0], fields[1]}
			}
		}
	}()
	for _, name := range want {
		if err := p.await(ctx, name); err != nil {
			return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), p.Stop())
		}
	}
	return p, nil
}

func (p *Process) await(ctx context.Context, name string) error {
	for p.Doors[name] == "" {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return fmt.Errorf("it ended before it said where its %s is", name)
			}
			p.Doors[line[0]] = line[1]
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// stopTime is how long a program may take to end.
const stopTime = 10 * time.Second

// Stop ends the program, first with SIGTERM.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	kill := time.AfterFunc(stopTime, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	for range p.lines {
	}
	return p.cmd.Wait()
}

// PID is the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }
