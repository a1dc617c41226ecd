package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// floor is a warm loop: one process, one call at a time, no server.
type floor struct {
	cmd *exec.Cmd
	// call answers a payload.
	call func(payload []byte) ([]byte, error)
	// hangUp lets the loop end by itself.
	hangUp func() error
}

func (f flags) startFloor(language, folder, dir string) (*floor, error) {
	if language == "bash" {
		return f.bashFloor(folder, dir)
	}
	return f.pythonFloor(folder)
}

func (f flags) pythonFloor(folder string) (*floor, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make socketpair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	argv := f.command("python", warmPython)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr, cmd.ExtraFiles = folder, os.Stderr, []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the warm loop of Python: %w", err), conn.Close())
	}
	return &floor{cmd: cmd, call: func(p []byte) ([]byte, error) { return exchange(conn, p) }, hangUp: conn.Close}, nil
}

// exchange sends a payload with its length and takes the answer in the same form.
func exchange(conn net.Conn, payload []byte) ([]byte, error) {
	parts := net.Buffers{binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload}
	if _, err := parts.WriteTo(conn); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(conn, answer)
	return answer, err
}

func (f flags) bashFloor(folder, dir string) (*floor, error) {
	in, out := filepath.Join(dir, "floor-in"), filepath.Join(dir, "floor-out")
	argv := f.command("bash", warmBash, in, out)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the warm loop of Bash: %w", err)
	}
	said := make([]byte, 8)
	call := func(payload []byte) ([]byte, error) {
		if err := os.WriteFile(in, payload, 0o600); err != nil {
			return nil, err
		}
		if _, err := stdin.Write([]byte("\n")); err != nil {
			return nil, err
		}
		if n, err := stdout.Read(said); err != nil || string(said[:n]) != "0\n" {
			return nil, fmt.Errorf("the warm loop of Bash said %q: %w", said[:n], err)
		}
		return os.ReadFile(out)
	}
	return &floor{cmd: cmd, call: call, hangUp: stdin.Close}, nil
}

// Call answers like a server, without one.
func (l *floor) Call(_ context.Context, payload []byte) ([]byte, error) { return l.call(payload) }

// Stop ends the loop and waits for it.
func (l *floor) Stop() error { return errors.Join(l.hangUp(), l.cmd.Wait()) }
