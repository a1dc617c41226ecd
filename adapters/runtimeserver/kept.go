package runtimeserver

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
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

// writer returns where a stream of the execution goes.
func (e *execution) writer(stream Stream) io.Writer {
	if stream == Stdout {
		return keepIn{e, &e.stdout}
	}
	return keepIn{e, &e.stderr}
}

type keepIn struct {
	e    *execution
	into *keeper
}

func (k keepIn) Write(p []byte) (int, error) {
	k.e.mu.Lock()
	defer k.e.mu.Unlock()
	k.into.add(p)
	return len(p), nil
}

func (keepIn) Close() error { return nil }

// Writer makes an execution the log of its handler: everything that is not the
// answer is stderr.
func (e *execution) Writer(string, Stream) io.WriteCloser { return keepIn{e, &e.stderr} }

// Entry writes an entry of the handler's logger.
func (e *execution) Entry(_, level, message string) {
	_, _ = fmt.Fprintf(keepIn{e, &e.stderr}, "%s: %s\n", level, message)
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

// copyTo starts the copy; the process has its end, so ours is closed.
func (p *streamPipe) copyTo(w io.Writer) {
	_ = p.write.Close()
	p.copies.Go(func() { _, _ = io.Copy(w, p.read) })
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
