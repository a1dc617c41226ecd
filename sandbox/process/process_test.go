//go:build linux && amd64

package process_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/sandbox/process"
	"github.com/hearth-run/hearth/sandbox/sandboxtest"
)

func factory() sandboxtest.Factory {
	root := os.Geteuid() == 0
	lives := 500
	if !root {
		lives = 100 // namespaces of users and networks cost ten times as much to take down
	}
	return sandboxtest.Factory{
		Open: func(root string) (sandbox.Driver, error) {
			config := process.Default()
			config.Root = root
			return process.Open(config)
		},
		Without: func(root string, walls ...string) (sandbox.Driver, error) {
			config := process.Default()
			config.Root = root
			return process.OpenWithout(config, walls)
		},
		Sweep: func(root string) error {
			_, err := process.Sweep(root, 10*time.Second)
			return err
		},
		Leftovers: process.Leftovers,
		Lives:     lives,
		Memory:    root, Pids: true, CPU: root, OwnUser: root,
	}
}

func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m, factory())) }

func TestSuite(t *testing.T) {
	defer goleak.VerifyNone(t)
	sandboxtest.Run(t, factory())
}
