package desk

import "time"

// Bounds of one invocation.
const (
	DefaultTimeout = 30 * time.Second
	MaxTimeout     = 15 * time.Minute
)

// bound is a span of time that may be absent.
type bound struct {
	left time.Duration
	set  bool
}

// budget is how long an invocation may take: what was asked for, cut to what is
// left of the call's own deadline and of the Run's lifetime. At most 0: no time
// is left.
func budget(millis int64, call, lifetime bound) time.Duration {
	d := time.Duration(millis) * time.Millisecond
	if millis == 0 {
		d = DefaultTimeout
	}
	d = min(d, MaxTimeout)
	for _, b := range []bound{call, lifetime} {
		if b.set {
			d = min(d, b.left)
		}
	}
	return d
}

// millis rounds up, so that a budget below a millisecond is not "the default".
func millis(d time.Duration) int64 {
	return max(1, (d + time.Millisecond - 1).Milliseconds())
}
