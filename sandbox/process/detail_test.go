//go:build linux && amd64

package process

import (
	"errors"
	"testing"
)

// A wall's cause is one line of a table, and its own.
func TestDetail(t *testing.T) {
	groups := errors.Join(errors.New("cgroup controller memory: mkdir: permission denied"), errors.New("cgroup controller cpu: no"), errors.New("cgroup controller cpuacct: no"))
	for wall, want := range map[string]string{
		"memory-limit":  "cgroup controller memory: mkdir: permission denied",
		"cpu-limit":     "cgroup controller cpu: no",
		"pids-limit":    "cgroup controller memory: mkdir: permission denied; cgroup controller cpu: no; cgroup controller cpuacct: no",
		"pid-namespace": "cgroup controller memory: mkdir: permission denied; cgroup controller cpu: no; cgroup controller cpuacct: no",
	} {
		if got := detail(wall, groups); got != want {
			t.Errorf("%s: %q", wall, got)
		}
	}
}
