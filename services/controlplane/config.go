package controlplane

import (
	"errors"
	"fmt"
	"time"
)

// Config are the control plane's settings. The tags are those of a command line.
type Config struct {
	// Data is the folder of the store; made if it is not there. One process at a
	// time uses it.
	Data string `help:"Folder of the store." placeholder:"DIR" required:""`
	// Lease is how long a node may serve after a renewal that it has sent. Nodes
	// renew a few times as often. A longer one survives longer pauses and moves the
	// Runs of a lost node later.
	Lease time.Duration `help:"How long a node may serve after a renewal." default:"10s"`
	// LeaseMargin is how much longer the control plane waits before it gives a
	// node's Runs to others: for clocks that run at different rates, and for the
	// time that a node needs to stop serving.
	LeaseMargin time.Duration `help:"How much longer than a lease to wait before a node's Runs move." default:"2s"`
	// KeepLostNodes is how long a lost node is still listed.
	KeepLostNodes time.Duration `help:"How long a lost node is listed." default:"1h"`
	// WatchHistory is how many changes of Runs are kept for watches; one that lags
	// behind further is told to list again.
	WatchHistory int `help:"Changes that are kept for watches." default:"16384"`
	// KeepArchives is how long an uploaded archive is kept that no Run names.
	KeepArchives time.Duration `help:"How long an archive is kept that no Run names." default:"1h"`
	// NoSync leaves out fsync: a kill still loses nothing that was acknowledged, a
	// loss of power may. For tests.
	NoSync bool `help:"Do without fsync: a loss of power may lose Runs."`
}

// Default is what New is given where nothing is known better; Data is empty.
func Default() Config {
	return Config{
		Lease:         10 * time.Second,
		LeaseMargin:   2 * time.Second,
		KeepLostNodes: time.Hour,
		WatchHistory:  16384,
		KeepArchives:  time.Hour,
	}
}

// Validate names every field that cannot be.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("controlplane config: "+format, args...))
		}
	}
	check(c.Data != "", "data is empty: name the folder of the store")
	check(c.Lease >= 100*time.Millisecond && c.Lease <= time.Hour, "lease is %v: use 100ms to 1h", c.Lease)
	check(c.LeaseMargin >= 10*time.Millisecond && c.LeaseMargin <= time.Hour, "lease_margin is %v: use 10ms to 1h", c.LeaseMargin)
	check(c.KeepLostNodes >= 0, "keep_lost_nodes is %v: use 0 or more", c.KeepLostNodes)
	check(c.WatchHistory >= 1 && c.WatchHistory <= 1<<22, "watch_history is %d: use 1 to 4194304", c.WatchHistory)
	check(c.KeepArchives >= time.Second, "keep_archives is %v: use 1s or more", c.KeepArchives)
	return errors.Join(errs...)
}
