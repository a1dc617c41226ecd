package runtimeserver

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimeserver/internal/runlog"
)

// maxOutput bounds each stream of an execution, in bytes.
const maxOutput = 1 << 20

// keeper keeps the end of a stream.
type keeper struct {
	bytes []byte
	total int64
}

func (k *keeper) add(p []byte) {
	k.total += int64(len(p))
	if len(p) > maxOutput {
		p = p[len(p)-maxOutput:]
	}
	k.bytes = append(k.bytes, p...)
	if len(k.bytes) > 2*maxOutput { // trimmed seldom, so that it costs little
		k.bytes = append(k.bytes[:0], k.bytes[len(k.bytes)-maxOutput:]...)
	}
}

// text is the stream as UTF-8 of at most bound bytes, with a mark where it was cut.
func (k *keeper) text(bound int) string {
	tail := k.bytes[max(0, len(k.bytes)-bound):]
	text := strings.ToValidUTF8(string(tail), "\ufffd")
	if k.total == int64(len(tail)) && len(text) <= bound {
		return text
	}
	mark := fmt.Sprintf("[hearth: %d bytes in all; the beginning was cut here]\n", k.total)
	return mark + clipHead(text, bound-len(mark))
}

// writer returns where a stream of the execution goes: into its status, and, as it
// comes, into the log of its Run. For one writer.
func (e *execution) writer(stream Stream) io.WriteCloser {
	into := &e.stderr
	if stream == Stdout {
		into = &e.stdout
	}
	return e.keep(into, stream)
}

func (e *execution) keep(into *keeper, stream Stream) keepIn {
	k := keepIn{e: e, into: into}
	if e.log != nil {
		k.log = e.log.Stream("", string(stream))
	}
	return k
}

type keepIn struct {
	e    *execution
	into *keeper
	log  *runlog.Stream // nil without a log
}

func (k keepIn) Write(p []byte) (int, error) {
	if k.log != nil {
		_, _ = k.log.Write(p) // it never fails
	}
	k.e.mu.Lock()
	defer k.e.mu.Unlock()
	k.into.add(p)
	return len(p), nil
}

// Close ends the last line.
func (k keepIn) Close() error {
	if k.log == nil {
		return nil
	}
	return k.log.Close()
}

// Writer makes an execution the log of its handler: everything that is not the
// answer is stderr in its status.
func (e *execution) Writer(_ string, stream Stream) io.WriteCloser { return e.keep(&e.stderr, stream) }

// Entry writes an entry of the handler's logger.
func (e *execution) Entry(_, level, message string) {
	if e.log != nil {
		e.log.Entry("", string(Logger), level, message)
	}
	_, _ = fmt.Fprintf(keepIn{e: e, into: &e.stderr}, "%s: %s\n", level, message)
}

// attemptID is how nodes name the executions of a Run: RUN_UID.ATTEMPT.NODE, or
// without the node.
var attemptID = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_-]{0,127})\.[0-9]{1,10}(\.[a-z0-9-]{1,63})?$`)

// openLog opens the log of the Run that an execution is an attempt of; an
// execution with another kind of ID has none. What it writes is bounded by the
// file, not by stream: it may go on for days.
func (s *Server) openLog(executionID string) *runlog.Log {
	named := attemptID.FindStringSubmatch(executionID)
	if named == nil {
		return nil
	}
	return s.logs.Open(named[1], runlog.Config{FileBytes: s.cfg.LogFileBytes, LineBytes: s.cfg.LogLineBytes, StreamBytes: math.MaxInt64})
}

func (e *execution) closeLog() {
	if e.log == nil {
		return
	}
	if err := errors.Join(e.log.Err(), e.log.Close()); err != nil {
		e.server.log.Warn("some of an execution's output was lost", "execution_id", e.request.GetId(), "err", err)
	}
}

// streamPipe is a pipe from a process, copied until its last writer is gone.
type streamPipe struct {
	read, write *os.File
	copies      sync.WaitGroup
}

func newStreamPipe() (*streamPipe, error) {
	read, write, err := os.Pipe()
	return &streamPipe{read: read, write: write}, err
}

// copyTo starts the copy, whose end closes w; the process has its end, so ours is
// closed.
func (p *streamPipe) copyTo(w io.WriteCloser) {
	_ = p.write.Close()
	p.copies.Go(func() {
		defer w.Close()
		_, _ = io.Copy(w, p.read)
	})
}

// finish waits for the end of the stream: every writer is dead. One that escaped,
// where there are no cgroups, is not waited for.
func (p *streamPipe) finish() {
	_ = p.read.SetReadDeadline(time.Now().Add(time.Second))
	p.copies.Wait()
}

func (p *streamPipe) close() {
	_ = p.write.Close()
	p.finish()
	_ = p.read.Close()
}
