package node

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// exitBound is how long a process that hung up may take to end by itself.
const exitBound = 200 * time.Millisecond

// instance is one process that has imported the file; after a kill there is none
// until the next call.
type instance struct {
	f    runtimeserver.Function
	argv []string

	work   sync.Mutex // guards the fields below; held through a call
	conn   *os.File   // nil without a process
	lines  *bufio.Scanner
	leader *process.Leader
	pipes  *pipes
}

// verdict is a line of driver.js: a piece of a stream, or how a call ended.
type verdict struct {
	ID, Stream, Text         string
	Done, Large              bool
	Invalid, Payload, Output string
	Outputs                  map[string]string
	Error                    *runtimeserver.HandlerError
}

// open starts a process and waits for its import.
func (i *instance) open(ctx context.Context) error {
	if err := i.start(); err != nil {
		return errors.Join(err, i.end())
	}
	v, err := i.await(ctx, "")
	if err == nil && v.Invalid == "" && v.Error == nil {
		return nil
	}
	err = i.lost(ctx, err)
	failed, ended := errors.AsType[*runtimeserver.HandlerError](err)
	switch {
	case v.Invalid != "":
		return edge.Publicf(runtimeserver.ErrHandlerInvalid, "%s", v.Invalid)
	case v.Error != nil:
		return &runtimeserver.LoadError{Text: v.Error.Trace}
	case ended:
		return &runtimeserver.LoadError{Text: "the import: " + failed.Message + "\n" + failed.Trace}
	}
	return err
}

func (i *instance) start() error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make control socket: %w", err)
	}
	nonblock := unix.SetNonblock(fds[0], true) // ours alone: deadlines need it
	i.conn, i.lines = os.NewFile(uintptr(fds[0]), "control"), nil
	theirs := os.NewFile(uintptr(fds[1]), "control")
	i.lines = bufio.NewScanner(i.conn)
	i.lines.Buffer(nil, 8*runtimeserver.MaxPayload)
	cmd := exec.Command(i.argv[0], i.argv[1:]...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = i.f.Dir, i.f.Env, []*os.File{theirs}
	if i.pipes, err = newPipes(i.f.Logs, cmd); err == nil {
		i.leader, err = i.f.Processes.Start(cmd)
		i.pipes.started(cmd)
	}
	return errors.Join(err, nonblock, theirs.Close())
}

// Invoke runs one call; see runtimeserver.Instance.
func (i *instance) Invoke(ctx context.Context, call runtimeserver.Call) (runtimeserver.Result, error) {
	if !utf8.Valid(call.Input) {
		return runtimeserver.Result{}, edge.Publicf(runtimeserver.ErrPayload, "input: is not UTF-8")
	}
	i.work.Lock()
	defer i.work.Unlock()
	if i.conn == nil {
		if err := i.open(ctx); err != nil {
			return runtimeserver.Result{}, err
		}
	}
	v, err := i.exchange(ctx, call)
	if err != nil {
		return runtimeserver.Result{}, i.lost(ctx, err)
	}
	sweep(i.leader.Pid())
	switch {
	case v.Payload != "":
		return runtimeserver.Result{}, edge.Publicf(runtimeserver.ErrPayload, "input: %s", v.Payload)
	case v.Large:
		return runtimeserver.Result{}, edge.Publicf(runtimeserver.ErrResponseTooLarge, "output: more than %d bytes of JSON", runtimeserver.MaxPayload)
	case v.Error != nil:
		return runtimeserver.Result{}, v.Error
	}
	return runtimeserver.Result{Output: []byte(v.Output), ContentType: "application/json", Outputs: v.Outputs}, runtimeserver.CheckOutputs(v.Outputs)
}

func (i *instance) exchange(ctx context.Context, call runtimeserver.Call) (verdict, error) {
	body, err := json.Marshal(map[string]any{"id": call.InvocationID, "input": string(call.Input), "deadline": call.Deadline.UnixMilli()})
	if err != nil {
		return verdict{}, err
	}
	if _, err := i.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
		return verdict{}, err
	}
	return i.await(ctx, call.InvocationID)
}

// await passes on what is written until the process says that it is done.
func (i *instance) await(ctx context.Context, id string) (verdict, error) {
	conn := i.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	streams := newStreams(i.f.Logs, id)
	defer streams.close()
	for i.lines.Scan() {
		var v verdict
		if err := json.Unmarshal(i.lines.Bytes(), &v); err != nil {
			return v, fmt.Errorf("read control socket: %w", err)
		}
		if v.Done {
			return v, nil
		}
		streams.write(runtimeserver.Stream(v.Stream), v.Text)
	}
	return verdict{}, fmt.Errorf("read control socket: %w", errors.Join(i.lines.Err(), os.ErrClosed))
}

// lost ends the process with all that descends from it and says why it had to.
func (i *instance) lost(ctx context.Context, cause error) error {
	if ctx.Err() == nil && cause != nil {
		select {
		case <-i.leader.Done(): // by itself
		case <-time.After(exitBound):
		}
	}
	leader := i.leader
	if err := i.end(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	status := leader.State().Sys().(syscall.WaitStatus)
	failed := &runtimeserver.HandlerError{Type: "exit", Trace: i.pipes.tail(), ExitCode: status.ExitStatus()}
	failed.Message = fmt.Sprintf("the process ended with status %d: return instead of process.exit", failed.ExitCode)
	if status.Signaled() {
		failed.Type, failed.ExitCode = "signal", 128+int(status.Signal())
		failed.Message = fmt.Sprintf("the process was killed by %v, or let go of its control socket", status.Signal())
	}
	return failed
}

// end leaves no process.
func (i *instance) end() error {
	err := i.f.Processes.Kill()
	if i.conn == nil {
		return err
	}
	err = errors.Join(err, i.conn.Close())
	i.conn = nil
	if i.leader != nil {
		<-i.leader.Done()
	}
	i.pipes.wait()
	return err
}

// Close ends every process, those of a call that runs included.
func (i *instance) Close() error {
	err := i.f.Processes.Close() // from here on none can start
	i.work.Lock()
	defer i.work.Unlock()
	return errors.Join(err, i.end())
}
