package bash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

// killPatience is how long the warm bash may take to notice that its subshell was
// killed, before it is taken for lost.
const killPatience = 2 * time.Second

// call runs one call in the subshell that waits, and leaves nothing of it.
func (i *instance) call(ctx context.Context, turn int, call runtimeserver.Call) (runtimeserver.Result, error) {
	if ctx.Err() != nil { // the subshell goes on waiting, for the next call
		i.warm.hold(turn)
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
	stdout := startCapture(w.channels.output.read, out)
	stderr := startCapture(w.channels.errors.read, io.MultiWriter(said, log))

	_, err := fmt.Fprintf(w.channels.control.write, "%s\n", call.InvocationID)
	status, ended := 0, false
	if err == nil {
		status, ended, err = i.wait(ctx, turn, out.over)
	}
	lost := !ended
	if ended {
		if e := i.subs[turn].Kill(); e != nil { // what the call has left behind
			lost, err = true, e
		}
	}
	if lost {
		if e := i.f.Processes.Kill(); e != nil {
			err = e
		}
	}
	for _, c := range []*capture{stdout, stderr} {
		if e := c.finish(); e != nil && err == nil {
			err = e
		}
	}
	outputs, outputsErr := i.outputs.take()
	if lost {
		if e := i.replace(); e != nil && err == nil {
			err = e
		}
	}
	switch {
	case err != nil:
		return runtimeserver.Result{}, err
	case out.full:
		return runtimeserver.Result{}, runtimeserver.ErrResponseTooLarge
	case lost:
		return runtimeserver.Result{}, &runtimeserver.HandlerError{
			Type: "signal", ExitCode: 137, Trace: said.String(),
			Message: fmt.Sprintf("%s.%s ended the shell that its calls are forked from ($$ is that shell; $BASHPID is the call's own)", i.stem(), i.function),
		}
	case status != 0:
		return runtimeserver.Result{}, i.failure(status, said.String())
	case outputsErr != nil:
		return runtimeserver.Result{}, outputsErr
	}
	return runtimeserver.Result{Output: out.bytes, ContentType: contentType(out.bytes), Outputs: outputs}, nil
}

// wait waits for the end of the subshell, and brings it about when the context is
// done or the answer is too large. It says whether the warm bash has told the end.
func (i *instance) wait(ctx context.Context, turn int, over <-chan struct{}) (status int, ended bool, err error) {
	select {
	case line := <-i.warm.reports:
		n, _ := fmt.Sscanf(line, "ended %d", &status)
		return status, n == 1, nil
	case <-i.warm.leader.Done():
		return 0, false, nil
	case <-over:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if e := i.subs[turn].Kill(); e != nil {
		return 0, false, e
	}
	patience := time.NewTimer(killPatience)
	defer patience.Stop()
	select {
	case line := <-i.warm.reports:
		n, _ := fmt.Sscanf(line, "ended %d", &status)
		return status, n == 1, err
	case <-i.warm.leader.Done():
	case <-patience.C:
	}
	return 0, false, err
}

// hold gives back a turn that was not used.
func (w *warm) hold(turn int) { w.held = &turn }

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
