//go:build linux && amd64

package process

import "fmt"

// users lends numeric user ids; the driver's mutex guards it. The kernel counts many
// things by user (inotify watches, pipe pages, pending signals), so that two
// containers with one id could starve each other.
type users struct {
	first, count uint32
	next         uint32
	free         []uint32
}

func (u *users) take() (uint32, error) {
	if n := len(u.free); n > 0 {
		uid := u.free[n-1]
		u.free = u.free[:n-1]
		return uid, nil
	}
	if u.next == u.count {
		return 0, fmt.Errorf("all %d user ids are lent to living containers; raise users or destroy some", u.count)
	}
	u.next++
	return u.first + u.next - 1, nil
}

func (u *users) give(uid uint32) { u.free = append(u.free, uid) }
