package runtimeserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/registration"
	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/runlog"
)

// body is a loaded instance with what belongs to it.
type body struct {
	instance Instance
	group    *process.Group
	temp     string
	born     time.Time
	calls    int // the owner's
}

// close ends the instance and removes what it had.
func (b *body) close() error {
	var errs []error
	if b.instance != nil {
		errs = append(errs, b.instance.Close())
	}
	return errors.Join(append(errs, b.group.Close(), os.RemoveAll(b.temp))...)
}

var errLoadTimeout = errors.New("the load took too long")

// load makes the first instance and reports how that went.
func (o *owner) load(ctx context.Context) {
	if o.before != nil {
		select {
		case <-o.before.released:
		case <-ctx.Done():
		}
		o.before = nil
	}
	o.runlog = o.openLog()
	b, err := o.loadBody(ctx)
	m := message{body: b, err: err, Event: registration.Event{Kind: registration.Loaded}}
	switch {
	case err == nil:
	case errors.Is(err, ErrHandlerInvalid):
		m.Kind = registration.LoadInvalid
		o.closeLog()
	default:
		m.Kind, m.Text = registration.LoadFailed, o.fatal(err)
	}
	_ = o.hand(m)
}

// fatal is the text of a failed load for FunctionStatus.
func (o *owner) fatal(err error) string {
	if failed, ok := errors.AsType[*LoadError](err); ok {
		return clip(failed.Text, MaxFatalError)
	}
	if errors.Is(err, errLoadTimeout) {
		return fmt.Sprintf("loading took longer than %s: let the code do less before its first call, or raise the load timeout", o.server.cfg.LoadTimeout)
	}
	return "the Runtime Server could not start an instance: its log says why"
}

// loadBody makes an instance. When it fails nothing is left.
func (o *owner) loadBody(ctx context.Context) (*body, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.server.cfg.LoadTimeout, errLoadTimeout)
	defer cancel()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	group, err := o.server.keeper.Group("reg")
	if err != nil {
		return nil, err
	}
	b := &body{group: group, born: time.Now()}
	b.temp, err = os.MkdirTemp(o.server.tempDir(), o.function.RegistrationID+"-")
	if err == nil {
		b.instance, err = o.server.language.Load(ctx, o.complete(b))
	}
	if err == nil {
		return b, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	b.instance = nil
	if e := b.close(); e != nil {
		o.log.Error("clean up after a load", "err", e)
	}
	return nil, err
}

// complete fills in what the language needs.
func (o *owner) complete(b *body) Function {
	f := o.function
	f.Env = o.server.cfg.environ(b.temp, o.env, map[string]string{
		"HEARTH_RUN_UID": f.RunUID,
		"HEARTH_ATTEMPT": strconv.Itoa(int(f.Attempt)),
	})
	f.Processes, f.Temp, f.Logs = b.group, b.temp, sink{o.runlog}
	return f
}

// close ends the registration's processes, a replacement included, and reports.
func (o *owner) close() {
	o.spare.stop()
	if o.body != nil {
		if err := o.body.close(); err != nil {
			o.log.Error("close registration", "err", err)
		}
	}
	o.closeLog()
	o.post(registration.Event{Kind: registration.Closed})
}

// openLog opens the Run's log. A log that cannot be written stops no function.
func (o *owner) openLog() *runlog.Log {
	cfg := o.server.cfg
	return o.server.logs.Open(o.function.RunUID, runlog.Config{FileBytes: cfg.LogFileBytes, LineBytes: cfg.LogLineBytes, StreamBytes: cfg.LogStreamBytes})
}

func (o *owner) closeLog() {
	if o.runlog == nil {
		return
	}
	if err := errors.Join(o.runlog.Err(), o.runlog.Close()); err != nil {
		o.log.Warn("some of user code's output was lost", "file", filepath.Base(o.function.RunUID), "err", err)
	}
}
