//go:build !linux || !amd64

package process

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/hearth-run/hearth/sandbox"
)

// errUnsupported: the walls are Linux's, and the init program and the list of calls
// are written for one architecture so far.
var errUnsupported = errors.New("the process sandbox needs Linux on amd64")

// Driver cannot be opened on this platform.
type Driver struct{}

// Open refuses.
func Open(Config) (*Driver, error) { return nil, errUnsupported }

// Create refuses.
func (*Driver) Create(context.Context, sandbox.Spec) (sandbox.Container, error) {
	return nil, errUnsupported
}

// Close does nothing.
func (*Driver) Close() error { return nil }

// TemplateSpec says what a template process is.
type TemplateSpec struct {
	ID        string
	Path      string
	Argv, Env []string
	Stderr    *os.File
	Files     []*os.File
	Memory    int64
}

// Template is a template process; there is none on this platform.
type Template struct{}

// StartTemplate refuses.
func (*Driver) StartTemplate(TemplateSpec) (*Template, error) { return nil, errUnsupported }

// AdoptTemplate refuses.
func (*Driver) AdoptTemplate(int, string, int64) (*Template, error) { return nil, errUnsupported }

// Pid is 0.
func (*Template) Pid() int { return 0 }

// Ended is never closed.
func (*Template) Ended() <-chan struct{} { return nil }

// OOMKills is 0.
func (*Template) OOMKills() int64 { return 0 }

// Kill does nothing.
func (*Template) Kill() error { return nil }

// Entry is how a forked process enters a container; there is none on this platform.
type Entry struct {
	StepsAddress     uint64
	StepsBytes       int
	Code             []byte
	CodeEntry, Extra int
	Env              []string
	Files            []*os.File
}

// Adopt refuses.
func (*Entry) Adopt(context.Context, *os.File) error { return errUnsupported }

// Close does nothing.
func (*Entry) Close() {}

// Swept counts what an earlier life had left: nothing, here.
type Swept struct{ Processes, Cgroups, Mounts int }

// Any says that there was something.
func (s Swept) Any() bool { return s != Swept{} }

// Sweep finds nothing.
func Sweep(string, time.Duration) (Swept, error) { return Swept{}, nil }

// Leftovers finds nothing.
func Leftovers(string) ([]string, error) { return nil, nil }

// Probe names the reason why no wall stands.
func Probe(context.Context) ([]sandbox.Wall, error) {
	return []sandbox.Wall{{Name: "process-sandbox", Required: true, Detail: errUnsupported.Error()}}, nil
}

// Cost is what containers take that have some of the walls.
type Cost struct {
	Walls      string
	Start, End []time.Duration
}

// Costs refuses.
func Costs(context.Context, int) ([]Cost, error) { return nil, errUnsupported }
