// Package interpreter owns a function that is loaded in one process of its
// language, for languages without a way to fork a loaded process: after a kill
// the next call waits for a fresh load. With it a language is a program in that
// language and how to start it.
//
// The program finds its handler by its arguments and a control socket at
// descriptor 3, which carries messages of pyrunner. It says Ready or Refused
// (code, type, message, trace). Then it reads one Call at a time and says Entry
// (stream, text) for what the handler writes, and Answer (output, then key and
// value of each output) or Failure (code, type, message, trace).
package interpreter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/hearth-run/hearth/adapters/internal/output"
	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/pyrunner/message"
	"github.com/hearth-run/hearth/pyrunner/template"
)

// Instance is one process that has loaded a function; after a kill there is none
// until the next call. It implements runtimeserver.Instance.
type Instance struct {
	f      runtimeserver.Function
	argv   []string
	work   sync.Mutex     // guards the fields below; held through a call
	conn   *template.Conn // nil without a process
	leader *process.Leader
	pipes  *output.Pipes
}

// Load starts argv and waits until it is ready; see runtimeserver.Language.
func Load(ctx context.Context, f runtimeserver.Function, argv []string) (*Instance, error) {
	i := &Instance{f: f, argv: argv}
	if err := i.open(ctx); err != nil {
		return nil, err
	}
	return i, nil
}

// open starts a process and waits for its load.
func (i *Instance) open(ctx context.Context) error {
	conn, theirs, err := template.Pair(8 * runtimeserver.MaxPayload)
	if err != nil {
		return err
	}
	cmd := exec.Command(i.argv[0], i.argv[1:]...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = i.f.Dir, i.f.Env, []*os.File{theirs}
	if i.pipes, err = output.Attach(cmd, i.f.Logs); err == nil {
		i.leader, err = i.f.Processes.Start(cmd)
		i.pipes.Started()
	}
	if err = errors.Join(err, theirs.Close()); err != nil {
		return errors.Join(err, conn.Close())
	}
	i.conn = conn
	m, err := i.await(ctx, "")
	if err == nil && m.Kind == message.Ready {
		return nil
	}
	err = i.lost(ctx, err)
	switch failed, ended := errors.AsType[*runtimeserver.HandlerError](err); {
	case m.Text(0) == message.RefusedHandler:
		return edge.Publicf(runtimeserver.ErrHandlerInvalid, "%s", m.Text(2))
	case m.Kind == message.Refused:
		return &runtimeserver.LoadError{Text: m.Text(3)}
	case ended:
		return &runtimeserver.LoadError{Text: "the load: " + failed.Message + "\n" + failed.Trace}
	}
	return err
}

// Invoke runs one call; see runtimeserver.Instance.
func (i *Instance) Invoke(ctx context.Context, call runtimeserver.Call) (runtimeserver.Result, error) {
	i.work.Lock()
	defer i.work.Unlock()
	if i.conn == nil {
		if err := i.open(ctx); err != nil {
			return runtimeserver.Result{}, err
		}
	}
	var m message.Message
	err := i.conn.Send(message.Call, 0, call.InvocationID, time.Until(call.Deadline).Milliseconds(), call.Input)
	if err == nil {
		m, err = i.await(ctx, call.InvocationID)
	}
	if err != nil {
		return runtimeserver.Result{}, i.lost(ctx, err)
	}
	switch code := m.Text(0); {
	case m.Kind == message.Answer:
		return answer(m)
	case code == message.FailedPayload:
		return runtimeserver.Result{}, edge.Publicf(runtimeserver.ErrPayload, "input: %s", m.Text(2))
	case code == message.FailedResponse:
		return runtimeserver.Result{}, edge.Publicf(runtimeserver.ErrResponseTooLarge, "%s", m.Text(2))
	}
	return runtimeserver.Result{}, &runtimeserver.HandlerError{Type: m.Text(1), Message: m.Text(2), Trace: m.Text(3)}
}

func answer(m message.Message) (runtimeserver.Result, error) {
	outputs := map[string]string{}
	for i := 1; i+1 < len(m.Fields); i += 2 {
		outputs[m.Text(i)] = m.Text(i + 1)
	}
	return runtimeserver.Result{Output: m.Bytes(0), ContentType: "application/json", Outputs: outputs}, runtimeserver.CheckOutputs(outputs)
}

// await passes on what is written until the process says that it is done.
func (i *Instance) await(ctx context.Context, id string) (message.Message, error) {
	defer i.conn.Bound(ctx)()
	streams := map[string]io.WriteCloser{"stdout": i.f.Logs.Writer(id, runtimeserver.Stdout), "stderr": i.f.Logs.Writer(id, runtimeserver.Stderr)}
	defer streams["stdout"].Close()
	defer streams["stderr"].Close()
	for {
		m, err := i.conn.Receive()
		if err != nil || m.Kind != message.Entry {
			return m, err
		}
		if w := streams[m.Text(0)]; w != nil {
			_, _ = w.Write(m.Bytes(1)) // a sink never fails
		}
	}
}

// lost ends the process with all that descends from it and says why it had to.
func (i *Instance) lost(ctx context.Context, cause error) error {
	if ctx.Err() == nil && cause != nil {
		select {
		case <-i.leader.Done():
		case <-time.After(200 * time.Millisecond): // it lives on without its socket
		}
	}
	if err := i.end(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	status := i.leader.State().Sys().(syscall.WaitStatus)
	failed := &runtimeserver.HandlerError{Type: "exit", ExitCode: status.ExitStatus(), Trace: i.pipes.Tail()}
	failed.Message = fmt.Sprintf("the process ended with status %d", failed.ExitCode)
	if status.Signaled() {
		failed.Type, failed.ExitCode = "signal", 128+int(status.Signal())
		failed.Message = fmt.Sprintf("the process lost its control socket or was ended: %v", status.Signal())
	}
	return failed
}

// end leaves no process.
func (i *Instance) end() error {
	err := i.f.Processes.Kill()
	if i.conn != nil {
		err = errors.Join(err, i.conn.Close())
		<-i.leader.Done()
		i.pipes.Wait()
		i.conn = nil
	}
	return err
}

// Close ends every process, those of a call that runs included.
func (i *Instance) Close() error {
	err := i.f.Processes.Close() // from here on none can start
	i.work.Lock()
	defer i.work.Unlock()
	return errors.Join(err, i.end())
}
