package bash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

// killPatience is how long the warm bash may take to notice that its subshell was
// killed, before it is taken for lost.
const killPatience = 2 * time.Second

// call runs one call in the subshell that waits, and leaves nothing of it.
func (i *instance) call(ctx context.Context, number int, call runtimeserver.Call) (runtimeserver.Result, error) {
	if ctx.Err() != nil { // the subshell goes on waiting, for the next call
		return runtimeserver.Result{}, context.Cause(ctx)
	}
	w := i.warm
	if err := w.channels.put(call.Input); err != nil {
		return runtimeserver.Result{}, err
	}
	log := i.f.Logs.Writer(call.InvocationID, runtimeserver.Stderr)
	defer log.Close()
	said := &tail{bound: runtimeserver.MaxFatalError}
	out := newAnswer(runtimeserver.MaxPayload)
	stdout := startCapture(w.channels.output.read, out, i.buffers)
	stderr := startCapture(w.channels.errors.read, io.MultiWriter(said, log), i.buffers)

	w.waiting = 0
	_, err := fmt.Fprintf(w.channels.control.write, "%d %s\n", number, call.InvocationID)
	var end end
	if err == nil {
		end, err = i.wait(ctx, number, out.over)
	}
	kept := end.told
	if kept {
		kept = w.goOn(i.f.Processes, end.left) == nil
	}
	if !kept {
		if e := i.f.Processes.End(); e != nil && err == nil {
			err = e
		}
	}
	for _, c := range []*capture{stdout, stderr} {
		if e := c.finish(); e != nil && err == nil {
			err = e
		}
	}
	outputs, outputsErr := i.outputs.take()
	if !kept {
		if e := i.replace(); e != nil && err == nil {
			err = e
		}
	}
	switch {
	case err != nil:
		return runtimeserver.Result{}, err
	case out.full:
		return runtimeserver.Result{}, runtimeserver.ErrResponseTooLarge
	case !end.told:
		return runtimeserver.Result{}, &runtimeserver.HandlerError{
			Type: "signal", ExitCode: 137, Trace: said.String(),
			Message: fmt.Sprintf("%s.%s ended the shell that its calls are forked from ($$ is that shell; $BASHPID is the call's own)", i.stem(), i.function),
		}
	case end.status != 0:
		return runtimeserver.Result{}, i.failure(end.status, said.String())
	case outputsErr != nil:
		return runtimeserver.Result{}, outputsErr
	}
	return runtimeserver.Result{Output: out.bytes, ContentType: contentType(out.bytes), Outputs: outputs}, nil
}

// end is what the warm bash tells of a call's end; told is false if it does not.
type end struct {
	told   bool
	status int
	left   bool // it has killed what the call had left running
}

// goOn sees to it that nothing is left beside the warm bash, which waits, and lets
// it go on. left says that it found something. Only then may it fork the next
// subshell, so that what is killed here is never the next call's.
func (w *warm) goOn(group *process.Group, left bool) error {
	if _, err := w.settle(group, left); err != nil {
		return err
	}
	return w.on()
}

// settle ends what is left beside the warm bash, and says how many that were.
func (w *warm) settle(group *process.Group, left bool) (killed int, err error) {
	if !left {
		return 0, group.Reap()
	}
	if killed, err = group.Thin(w.leader); err != nil {
		return killed, err
	}
	return killed, group.Settle()
}

// on lets the warm bash go on: it forks the next subshell.
func (w *warm) on() error {
	w.resting = false
	_, err := fmt.Fprintln(w.channels.control.write, "on")
	return err
}

// wait waits for the end of the subshell, and brings it about when the context is
// done or the answer is too large.
func (i *instance) wait(ctx context.Context, number int, over <-chan struct{}) (end, error) {
	var err error
	select {
	case line := <-i.warm.reports:
		return ended(line, number), nil
	case <-i.warm.leader.Done():
		return end{}, nil
	case <-over:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if _, e := i.f.Processes.Thin(i.warm.leader); e != nil {
		return end{}, err
	}
	patience := time.NewTimer(killPatience)
	defer patience.Stop()
	select {
	case line := <-i.warm.reports:
		return ended(line, number), err
	case <-i.warm.leader.Done():
	case <-patience.C:
	}
	return end{}, err
}

// ended reads the report on the end of a call.
func ended(line string, number int) end {
	var e end
	var call, left int
	n, _ := fmt.Sscanf(line, "ended %d %d %d", &call, &e.status, &left)
	e.told, e.left = n == 3 && call == number, left == 1
	return e
}

// failure is what a status other than 0 means.
func (i *instance) failure(status int, said string) error {
	e := &runtimeserver.HandlerError{Type: "exit", ExitCode: status, Trace: said}
	e.Message = fmt.Sprintf("%s.%s exited with status %d", i.stem(), i.function, status)
	if signal := status - 128; signal > 0 && signal <= 64 {
		e.Type = "signal"
		e.Message += fmt.Sprintf(", as signal %d does", signal)
	}
	return e
}

// contentType says what an output is: JSON where it parses as JSON, else text
// where it is UTF-8, else bytes.
func contentType(output []byte) string {
	switch {
	case !utf8.Valid(output):
		return "application/octet-stream"
	case json.Valid(output):
		return "application/json"
	default:
		return "text/plain; charset=utf-8"
	}
}
