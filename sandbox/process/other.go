//go:build !linux || !amd64

package process

import (
	"context"
	"errors"
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
