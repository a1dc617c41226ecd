// Package output owns the two pipes behind a process's standard streams: what is
// written to them goes to the log of a Run, and the end of it is kept for errors.
package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

// maxTail is how much of standard error is kept, in bytes.
const maxTail = 4 << 10

// Pipes are read until the last process that has them is gone.
type Pipes struct {
	writers []*os.File
	readers sync.WaitGroup
	tail    []byte // of one reader until Wait
}

// Attach makes the streams of cmd pipes into logs, outside of any invocation.
// Close, or Started and Wait, end them.
func Attach(cmd *exec.Cmd, logs runtimeserver.LogSink) (*Pipes, error) {
	p := &Pipes{}
	stdout, outErr := p.open(logs.Writer("", runtimeserver.Stdout), nil)
	stderr, errErr := p.open(logs.Writer("", runtimeserver.Stderr), &p.tail)
	if err := errors.Join(outErr, errErr); err != nil {
		p.Started()
		p.Wait()
		return nil, fmt.Errorf("make pipes for the standard streams: %w", err)
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return p, nil
}

func (p *Pipes) open(into io.WriteCloser, tail *[]byte) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, into.Close())
	}
	p.writers = append(p.writers, w)
	p.readers.Go(func() {
		defer r.Close()
		defer into.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			_, _ = into.Write(buf[:n]) // a sink never fails
			if tail != nil {
				*tail = append(*tail, buf[:n]...)
				*tail = (*tail)[max(0, len(*tail)-maxTail):]
			}
			if err != nil {
				return
			}
		}
	})
	return w, nil
}

// Started lets go of the ends that belong to the process, whether it runs or not.
func (p *Pipes) Started() {
	for _, w := range p.writers {
		_ = w.Close()
	}
	p.writers = nil
}

// Wait returns when every process that could write is gone and all is read.
func (p *Pipes) Wait() { p.readers.Wait() }

// Tail returns the end of standard error, at most 4 KiB; after Wait.
func (p *Pipes) Tail() string { return string(p.tail) }
