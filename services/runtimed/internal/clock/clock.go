// Package clock owns the time by which a node counts its lease.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock returns the time since a fixed moment of this machine. It never goes
// back and goes on while the process is stopped.
type Clock func() time.Duration

// Boot is the time since the machine started, time of suspension counted. Go's
// own monotonic clock stands still while the machine is suspended, the control
// plane's does not: a node that counted by it would serve after its lease.
func Boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		// Linux has had this clock since 2.6.39; without it no lease can be kept.
		panic("read CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
