package bash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// instance is one loaded function: a warm bash, and its successor while that is
// loaded.
type instance struct {
	bash, file, function string
	f                    runtimeserver.Function
	outputs              outputsFile
	buffers              *sync.Pool // the language's; see capture

	busy sync.Mutex // held by Invoke, and by Close once no process is left
	next successor
	warm *warm // guarded by busy

	ctx    context.Context // ends with the instance
	cancel context.CancelFunc
	once   sync.Once
	err    error // of Close
}

// successor is the load of a new bash after the old one was lost.
type successor struct {
	done chan struct{} // nil when there is none
	warm *warm         // set before done is closed
	err  error
}

// open loads the first bash. When it fails no process is left.
func (i *instance) open(ctx context.Context) (err error) {
	i.ctx, i.cancel = context.WithCancel(context.Background())
	i.outputs = outputsFile(filepath.Join(i.f.Temp, "outputs"))
	i.f.Env = append(i.f.Env[:len(i.f.Env):len(i.f.Env)], "HEARTH_OUTPUTS="+string(i.outputs))
	i.warm, err = i.start(ctx)
	return err
}

// stem is the file's name beneath the working directory, without ".sh".
func (i *instance) stem() string {
	rel, err := filepath.Rel(i.f.Dir, i.file)
	if err != nil {
		rel = filepath.Base(i.file)
	}
	return strings.TrimSuffix(rel, ".sh")
}

// fromWindows is a hint for those whose editor writes a byte order mark or CR LF.
func (i *instance) fromWindows() string {
	text, err := os.ReadFile(i.file)
	if err != nil {
		return ""
	}
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return fmt.Sprintf("\n%[1]s.sh:1: the file begins with a byte order mark, which bash takes for a part of the first word. Remove it: sed -i '1s/^\\xEF\\xBB\\xBF//' %[1]s.sh", i.stem())
	}
	at := bytes.Index(text, []byte("\r\n"))
	if at < 0 {
		return ""
	}
	line := 1 + bytes.Count(text[:at], []byte("\n"))
	return fmt.Sprintf("\n%s.sh:%d: the line ends with CR LF, as on Windows; bash takes the CR for a part of the command. Convert the file: sed -i 's/\\r$//' %s.sh", i.stem(), line, i.stem())
}

// Invoke runs one call.
func (i *instance) Invoke(ctx context.Context, call runtimeserver.Call) (runtimeserver.Result, error) {
	if at := bytes.IndexByte(call.Input, 0); at >= 0 {
		return runtimeserver.Result{}, edge.Publicf(runtimeserver.ErrPayload, "input has a NUL at byte %d: a Bash function takes its payload as an argument, which cannot hold one", at)
	}
	i.busy.Lock()
	defer i.busy.Unlock()
	// A bash that was lost while it waited is replaced once, without a word.
	for try := 0; ; try++ {
		number, err := i.ready(ctx)
		if err == nil {
			return i.call(ctx, number, call)
		}
		if !errors.Is(err, errLost) {
			return runtimeserver.Result{}, err
		}
		if try == 2 {
			return runtimeserver.Result{}, &runtimeserver.LoadError{Text: "the bash that has sourced the file ends by itself, again and again"}
		}
		if err := i.replace(); err != nil {
			return runtimeserver.Result{}, err
		}
	}
}

// errLost says that the warm bash is gone or does not keep to its part.
var errLost = errors.New("the warm bash is lost")

// ready returns the number of the call that a subshell waits for.
func (i *instance) ready(ctx context.Context) (number int, err error) {
	if err := i.settle(ctx); err != nil {
		return 0, err
	}
	if i.warm.waiting > 0 {
		return i.warm.waiting, nil
	}
	// The first call has the first subshell forked: a function that nobody has called
	// yet has one process.
	if i.warm.resting {
		if err := i.warm.on(); err != nil {
			return 0, err
		}
	}
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-i.warm.leader.Done():
		return 0, errLost
	case line := <-i.warm.reports:
		if n, _ := fmt.Sscanf(line, "waits %d", &number); n != 1 || number < 1 {
			return 0, errLost
		}
		i.warm.waiting = number
		return number, nil
	}
}

// settle waits for a successor, if one is being loaded.
func (i *instance) settle(ctx context.Context) error {
	if i.next.done == nil {
		if i.warm == nil {
			return &runtimeserver.LoadError{Text: "the function was closed"}
		}
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-i.next.done:
	}
	w, err := i.next.warm, i.next.err
	i.next = successor{}
	if err == nil {
		i.warm = w
		return nil
	}
	if failed, ok := errors.AsType[*runtimeserver.LoadError](err); ok {
		return failed
	}
	return &runtimeserver.LoadError{Text: "after a kill the function could not be loaded again: " + err.Error()}
}

// replace ends what is left of the warm bash and starts its successor's load,
// which the next call waits for.
func (i *instance) replace() error {
	err := i.f.Processes.Kill()
	if i.warm != nil {
		err = errors.Join(err, i.warm.close())
		i.warm = nil
	}
	if err != nil {
		return err
	}
	done := make(chan struct{})
	i.next = successor{done: done}
	go func(next *successor) {
		defer close(done)
		if next.warm, next.err = i.start(i.ctx); next.err == nil {
			_ = next.warm.on() // a bash that cannot be told is lost: the next call finds that out
		}
	}(&i.next)
	return nil
}

// Close ends the instance. It interrupts a call that runs.
func (i *instance) Close() error {
	i.once.Do(func() {
		i.cancel()
		i.err = i.f.Processes.Kill()
		i.busy.Lock()
		defer i.busy.Unlock()
		if i.next.done != nil {
			<-i.next.done
			i.warm = i.next.warm
			i.next = successor{}
		}
		i.err = errors.Join(i.err, i.f.Processes.Kill())
		if i.warm != nil {
			i.err = errors.Join(i.err, i.warm.close())
			i.warm = nil
		}
	})
	return i.err
}
