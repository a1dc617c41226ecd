//go:build linux

// Package sandboxtest owns the suite that every sandbox driver passes: what a
// container does when asked, and what a program inside cannot do however it tries.
// The break-outs are really attempted, by Python programs (scripts) inside.
package sandboxtest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/hearth-run/hearth/sandbox"
)

// Factory is what the suite needs to know of a driver.
type Factory struct {
	// Open makes a driver that keeps its state in root.
	Open func(root string) (sandbox.Driver, error)
	// Without makes a driver that leaves walls out, which no driver outside of its
	// own tests can: the suite proves by it that it would see them missing. Nil leaves
	// those tests out.
	Without func(root string, walls ...string) (sandbox.Driver, error)
	// Sweep removes what a driver on root, which is gone, has left.
	Sweep func(root string) error
	// Lives is how many containers one after another have to leave no trace; 0 is 500.
	Lives int
	// Memory, Pids and CPU say that the driver can hold these limits on this
	// machine; their tests are left out of the suite otherwise.
	Memory, Pids, CPU bool
	// Leftovers lists what a driver has on the machine outside of its root, and what
	// is mounted below it; for a driver that lives, or one that was killed.
	Leftovers func(root string) ([]string, error)
	// OwnUser says that containers run as a user that nobody else has, without
	// groups; otherwise they run as the driver's own user in a user namespace.
	OwnUser bool
}

// Main is the driver package's TestMain: the suite runs its own test binary again as
// a process that owns a driver and is killed. It returns the exit code.
func Main(m *testing.M, f Factory) int {
	if os.Getenv(ownerEnv) != "" {
		return own(f)
	}
	return m.Run()
}

// Run runs the suite.
func Run(t *testing.T, f Factory) {
	s := &suite{Factory: f}
	for _, group := range []map[string]func(*testing.T, *suite){
		lifecycleTests, breakoutTests, endingTests, limitTests, crowdTests, ownerTests, missingTests(f),
	} {
		for name, test := range group {
			if s.left(name) {
				continue
			}
			t.Run(name, func(t *testing.T) { test(t, s) })
		}
	}
}

type suite struct {
	Factory
	broken bool // a wall is missing, and break-outs have to succeed
}

// left says that the machine lets the driver hold no such limit.
func (s *suite) left(name string) bool {
	needs := map[string]bool{
		"MemoryEaten": s.Memory, "MemoryGrows": s.Memory, "MemoryInScratch": s.Memory, "StatsCount": s.Memory,
		"ForkBomb": s.Pids, "CPUShare": s.CPU, "UsersDiffer": s.OwnUser,
	}
	has, known := needs[name]
	return known && !has
}

// open makes a driver that is closed with the test.
func (s *suite) open(t *testing.T) sandbox.Driver {
	t.Helper()
	d, err := s.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close driver: %v", err)
		}
	})
	return d
}

// wait ends a test that hangs.
const wait = 30 * time.Second

func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	t.Cleanup(cancel)
	return ctx
}
