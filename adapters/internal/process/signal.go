package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Signal sends a signal to every process that is in the group now. It is for
// asking; only Kill is sure.
func (g *Group) Signal(sig unix.Signal) error {
	var errs []error
	for _, pid := range g.pids() {
		if p, ok := readStat(pid); ok {
			errs = append(errs, signal(p, sig))
		}
	}
	return errors.Join(errs...)
}
