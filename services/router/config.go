package router

import (
	"errors"
	"fmt"
	"time"
)

// MaxMessage is the largest message that a router reads, in bytes.
const MaxMessage = 16 << 20

// Config are the router's settings. The tags are those of a command line.
type Config struct {
	// DefaultMemory is what a call without a memory budget is placed with, in bytes.
	DefaultMemory int64 `help:"Memory in bytes for a call that names no budget." default:"1073741824"`
	// Fill is the part of a worker's memory that may be promised.
	Fill float64 `help:"Part of a worker's memory that may be promised." default:"0.9"`
	// SessionWait is how long a call waits for the calls of its session before it.
	SessionWait time.Duration `help:"How long a call waits for its session's turn." default:"60s"`
	// QueueWait is how long a call waits for room when every worker is full; 0 refuses it at once.
	QueueWait time.Duration `help:"How long a call waits when no worker has room; 0 refuses it at once." default:"0s"`
	// PrepareWait is how long a call waits when no worker is ready and one is being prepared.
	PrepareWait time.Duration `help:"How long a call waits for a worker that is being prepared, where none is ready; 0 refuses it at once." default:"60s"`
	// GatherWait is how long after its start a router lets calls wait for a first worker.
	GatherWait time.Duration `help:"How long after the start calls wait for a first worker; 0 refuses them at once." default:"10s"`
	// QueueMax is how many calls may wait for room.
	QueueMax int `help:"How many calls may wait for room." default:"1000"`
	// ExecutionTimeout bounds a call whose client set no earlier deadline.
	ExecutionTimeout time.Duration `help:"How long a call may take at most." default:"1h"`
	// Attempts is how many workers are tried when they refuse a call before anything ran.
	Attempts int `help:"Workers that are tried at most for one call." default:"4"`
	// ReplayBytes is how much of a call's body is kept for the next worker while none has answered.
	ReplayBytes int `help:"Bytes of a call's body that are kept for another worker." default:"1048576"`
	// ProbeEvery, ProbeTimeout and ProbeFailures say how workers are probed, and evicted.
	ProbeEvery    time.Duration `help:"Time between two probes of a worker." default:"5s"`
	ProbeTimeout  time.Duration `help:"How long a probe may take." default:"2s"`
	ProbeFailures int           `help:"Failed probes in a row that evict a worker." default:"3"`
	// Silence is how long a worker may report nothing before it is evicted.
	Silence time.Duration `help:"How long a worker may be silent." default:"30s"`
	// Tombstones and TombstoneAge bound what is remembered of expired sessions.
	Tombstones   int           `help:"Expired sessions that are remembered." default:"100000"`
	TombstoneAge time.Duration `help:"How long an expired session is remembered." default:"1h"`
	// CatalogueDir is a folder of catalogues, *.json, one a flavor; changes are taken over while the router runs. Empty: every start is cold.
	CatalogueDir string `help:"Folder of checkpoint catalogues (*.json)." placeholder:"DIR"`
	// Token is what clients must show as "Authorization: Bearer TOKEN"; empty: nothing.
	Token string `help:"Token that clients must show; empty: none."`
	// WorkerToken is what workers must show with their reports; empty: nothing.
	WorkerToken string `help:"Token that workers must show; empty: none."`
}

// Default is what New is given where nothing is known better.
func Default() Config {
	return Config{
		DefaultMemory: 1 << 30, Fill: 0.9,
		SessionWait: time.Minute, PrepareWait: time.Minute, GatherWait: 10 * time.Second, QueueMax: 1000, ExecutionTimeout: time.Hour,
		Attempts: 4, ReplayBytes: 1 << 20,
		ProbeEvery: 5 * time.Second, ProbeTimeout: 2 * time.Second, ProbeFailures: 3, Silence: 30 * time.Second,
		Tombstones: 100_000, TombstoneAge: time.Hour,
	}
}

// Validate names every field that cannot be.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("router config: "+format, args...))
		}
	}
	check(c.DefaultMemory >= 1, "default_memory is %d: use 1 byte or more", c.DefaultMemory)
	check(c.Fill > 0 && c.Fill <= 1, "fill is %v: use more than 0, up to 1", c.Fill)
	check(c.SessionWait > 0, "session_wait is %v: use more than 0", c.SessionWait)
	check(c.QueueWait >= 0, "queue_wait is %v: use 0 or more", c.QueueWait)
	check(c.PrepareWait >= 0, "prepare_wait is %v: use 0 or more", c.PrepareWait)
	check(c.GatherWait >= 0, "gather_wait is %v: use 0 or more", c.GatherWait)
	check(c.QueueMax >= 1, "queue_max is %d: use 1 or more; queue_wait=0 refuses at once", c.QueueMax)
	check(c.ExecutionTimeout > 0, "execution_timeout is %v: use more than 0", c.ExecutionTimeout)
	check(c.Attempts >= 1 && c.Attempts <= 64, "attempts is %d: use 1 to 64", c.Attempts)
	check(c.ReplayBytes >= 0 && c.ReplayBytes <= 64<<20, "replay_bytes is %d: use 0 to 67108864", c.ReplayBytes)
	check(c.ProbeEvery > 0, "probe_every is %v: use more than 0", c.ProbeEvery)
	check(c.ProbeTimeout > 0, "probe_timeout is %v: use more than 0", c.ProbeTimeout)
	check(c.ProbeFailures >= 1, "probe_failures is %d: use 1 or more", c.ProbeFailures)
	check(c.Silence > 0, "silence is %v: use more than 0", c.Silence)
	check(c.Tombstones >= 1, "tombstones is %d: use 1 or more", c.Tombstones)
	check(c.TombstoneAge > 0, "tombstone_age is %v: use more than 0", c.TombstoneAge)
	return errors.Join(errs...)
}
