//go:build linux && amd64

package process

import (
	"slices"

	"github.com/hearth-run/hearth/sandbox/internal/plan"
)

// OpenWithout opens a driver whose containers lack some walls.
func OpenWithout(config Config, walls []string) (*Driver, error) {
	d, err := Open(config)
	if err != nil {
		return nil, err
	}
	d.reshape = func(p plan.Plan) plan.Plan {
		return p.Keep(func(op plan.Op) bool { return !slices.Contains(walls, op.Wall) })
	}
	return d, nil
}

// Root is the folder of the driver's state.
func (d *Driver) Root() string { return d.config.Root }
