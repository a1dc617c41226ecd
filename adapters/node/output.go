package node

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

// maxTail is how much of standard error is kept for an error, in bytes.
const maxTail = 4 << 10

// streams are the logs of one call, each opened when something is written.
type streams struct {
	logs runtimeserver.LogSink
	id   string
	open map[runtimeserver.Stream]io.WriteCloser
}

func newStreams(logs runtimeserver.LogSink, id string) *streams {
	return &streams{logs: logs, id: id, open: map[runtimeserver.Stream]io.WriteCloser{}}
}

func (s *streams) write(name runtimeserver.Stream, text string) {
	if name != runtimeserver.Stdout && name != runtimeserver.Stderr {
		return // nothing that driver.js says
	}
	if s.open[name] == nil {
		s.open[name] = s.logs.Writer(s.id, name)
	}
	_, _ = io.WriteString(s.open[name], text) // a sink never fails
}

func (s *streams) close() {
	for _, w := range s.open {
		_ = w.Close()
	}
}

// pipes take what goes past driver.js: the runtime's own words and those of other
// programs. They end when the last process has.
type pipes struct {
	readers sync.WaitGroup
	last    []byte // the end of standard error; read after readers.Wait
}

func newPipes(logs runtimeserver.LogSink, cmd *exec.Cmd) (*pipes, error) {
	p := &pipes{}
	out, outErr := p.open(logs.Writer("", runtimeserver.Stdout), false)
	err, errErr := p.open(logs.Writer("", runtimeserver.Stderr), true)
	cmd.Stdout, cmd.Stderr = out, err
	return p, errors.Join(outErr, errErr)
}

// open makes a pipe and returns where to write to it.
func (p *pipes) open(into io.WriteCloser, keep bool) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.readers.Go(func() {
		buf := make([]byte, 32<<10)
		for n, err := 0, error(nil); err == nil; {
			n, err = r.Read(buf)
			_, _ = into.Write(buf[:n])
			if keep {
				p.last = append(p.last, buf[:n]...)
				p.last = p.last[max(0, len(p.last)-maxTail):]
			}
		}
		_, _ = into.Close(), r.Close()
	})
	return w, nil
}

// started lets go of the ends that the process has.
func (p *pipes) started(cmd *exec.Cmd) {
	for _, stream := range []any{cmd.Stdout, cmd.Stderr} {
		if f, ok := stream.(*os.File); ok && f != nil {
			_ = f.Close()
		}
	}
}

func (p *pipes) wait() { p.readers.Wait() }

func (p *pipes) tail() string { return string(p.last) }

// sweep ends the processes that a call has left. They are children of node, which
// reads its control socket now and reaps nobody: no pid can be another's.
func sweep(pid int) {
	name := strconv.Itoa(pid)
	children, _ := os.ReadFile("/proc/" + name + "/task/" + name + "/children")
	for _, child := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil && pid > 1 {
			_ = syscall.Kill(-pid, syscall.SIGKILL) // its session, if it leads one
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
