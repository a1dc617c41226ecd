package zygote

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hearth-run/hearth/pyrunner/message"
	"github.com/hearth-run/hearth/pyrunner/template"
)

// UnfitError says why a set of imports is no zygote.
type UnfitError struct {
	// Module is the one that was named and is at fault.
	Module string
	// Why is a clause for people: not there, failed, threads, descriptors, time.
	Why string
}

func (e *UnfitError) Error() string {
	return fmt.Sprintf("module %s cannot be imported ahead of calls: %s", e.Module, e.Why)
}

// errSlow is the cause of an import's end that took too long.
var errSlow = errors.New("the import took too long")

// measure imports one module and judges what it has left in the process. The zygote is
// of no use after an error.
func (z *Zygote) measure(ctx context.Context, module string) error {
	bounded, cancel := context.WithTimeoutCause(ctx, z.tree.ImportTimeout, errSlow)
	defer cancel()
	err := z.load(bounded, module)
	switch {
	case errors.Is(err, errSlow) && ctx.Err() == nil:
		return &UnfitError{module, fmt.Sprintf("its import took longer than %v", z.tree.ImportTimeout)}
	case hungUp(err):
		return &UnfitError{module, z.died()}
	}
	return err
}

// load imports one module.
func (z *Zygote) load(ctx context.Context, module string) error {
	z.asking.Lock()
	defer z.asking.Unlock()
	loaded, err := z.asked.Load(ctx, "imports", module)
	if refused, ok := errors.AsType[*template.RefusedError](err); ok && refused.Code == message.RefusedLoad {
		return &UnfitError{module, refused.Text}
	}
	if err != nil {
		return fmt.Errorf("import module %s: %w", module, err)
	}
	if why := unfit(loaded); why != "" {
		return &UnfitError{module, why}
	}
	z.imports[module] = loaded.Took
	return nil
}

// unfit says why a process must not be forked after a load, "" where it may be.
func unfit(l template.Loaded) string {
	switch {
	case !l.CanFork():
		return fmt.Sprintf("it leaves %d threads running, which no fork has", l.Threads-1)
	case l.Ended > 0:
		return fmt.Sprintf("it leaves %d processes running, which no fork has", l.Ended)
	case len(l.Descriptors) > 0:
		return "it holds open what every container would share: " + strings.Join(l.Descriptors, ", ")
	}
	return ""
}

// died says why the process ended in the middle of an import.
func (z *Zygote) died() string {
	<-z.process.Ended() // it has hung up: it is ending
	if z.process.OOMKills() > 0 {
		return fmt.Sprintf("with it the process needs more than the %d bytes that a zygote may have", z.tree.MemoryLimit)
	}
	return "its import ends the process"
}

// list learns what is loaded.
func (z *Zygote) list(ctx context.Context) (err error) {
	z.asking.Lock()
	defer z.asking.Unlock()
	z.loaded, err = z.asked.List(ctx)
	return err
}
