package runtimed

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Config is what can be set about a runtimed. The tags are for commands.
type Config struct {
	// Name is the node's, the same over restarts and no other node's; a DNS-1123
	// label. Empty is the Runtime's; for a process of its own, one that is made of
	// the Runtime, the machine and the data folder.
	Name string `help:"Name of the node, the same over restarts and no other node's; empty: made of runtime, machine and data folder."`
	// Runtime is the name that Runs ask for: "python", "bash" or a custom one.
	Runtime string `help:"Runtime that Runs ask for: python, bash or a custom name." default:"python"`
	// Advertise is where gateways and peers reach this node, as dial takes it.
	Advertise string `help:"Address that gateways and peers use; empty is the one listened on."`
	// Capacity is how many Runs the node takes.
	Capacity int32 `help:"Runs that the node takes." default:"1000"`
	// Workspace is where the folders of Runs are prepared. The Runtime Server sees
	// it under the same path.
	Workspace string `help:"Folder for the sources of Runs; the Runtime Server sees it under the same path." default:"hearth-workspace"`
	// Data is where the node keeps its ledger: one folder, one process.
	Data string `help:"Folder for the node's own state." default:"hearth-runtimed"`
	// StatusInterval is between two polls of a registration; with many Runs it
	// grows, so that the Runtime Server answers 25 polls a second at most.
	StatusInterval time.Duration `help:"Time between two polls of a registration." default:"1s"`
	// HealthInterval is between two handshakes with the Runtime Server.
	HealthInterval time.Duration `help:"Time between two handshakes with the Runtime Server." default:"5s"`
	// Patience is how long the Runtime Server may be unreachable before its Runs
	// fail as RUNTIME_UNAVAILABLE.
	Patience time.Duration `help:"How long the Runtime Server may be unreachable before its Runs fail." default:"10s"`
	// CallTimeout bounds one short call of the control plane or the Runtime Server.
	CallTimeout time.Duration `help:"Bound of one short call of the control plane or the Runtime Server." default:"5s"`
	// LoadTimeout bounds one RegisterFunction; a load that takes longer is joined
	// again.
	LoadTimeout time.Duration `help:"Bound of one RegisterFunction; a longer load is joined again." default:"75s"`
	// ReleaseTimeout bounds the release of one Run.
	ReleaseTimeout time.Duration `help:"Bound of the release of one Run." default:"10s"`
	// DrainTimeout bounds the drain of the node at its end.
	DrainTimeout time.Duration `help:"Bound of the drain of the node when it stops." default:"3s"`
	// SourceTimeout bounds the preparation of one source.
	SourceTimeout time.Duration `help:"Bound of the preparation of one source." default:"2m"`
	// SourceBytes and SourceFiles bound one source, unpacked.
	SourceBytes int64 `help:"Most bytes of one source, unpacked." default:"536870912"`
	SourceFiles int   `help:"Most files and folders of one source." default:"10000"`
	// GitFiles lets git sources name repositories of this machine (file://).
	GitFiles bool `help:"Let git sources name repositories of this machine (file://)."`
}

// Default returns the settings of a node that has only to be told its folders.
func Default() Config {
	return Config{
		Runtime: "python", Capacity: 1000, Workspace: "hearth-workspace", Data: "hearth-runtimed",
		StatusInterval: time.Second, HealthInterval: 5 * time.Second, Patience: 10 * time.Second,
		CallTimeout: 5 * time.Second, LoadTimeout: 75 * time.Second, ReleaseTimeout: 10 * time.Second,
		DrainTimeout: 3 * time.Second, SourceTimeout: 2 * time.Minute, SourceBytes: 512 << 20, SourceFiles: 10_000,
	}
}

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Validate names every bad field at once.
func (c Config) Validate() error {
	var bad []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	check(c.Name == "" || label.MatchString(c.Name), "name %q: want at most 63 of a-z 0-9 -, the first and last no dash", c.Name)
	check(label.MatchString(c.Runtime), "runtime %q: want at most 63 of a-z 0-9 -, the first and last no dash", c.Runtime)
	check(len(c.Advertise) <= 1024, "advertise has %d bytes: want at most 1024", len(c.Advertise))
	check(c.Capacity >= 1 && c.Capacity <= 100_000, "capacity is %d: want 1 to 100000", c.Capacity)
	check(strings.TrimSpace(c.Workspace) != "", "workspace is empty: name a folder")
	check(strings.TrimSpace(c.Data) != "", "data is empty: name a folder")
	check(c.SourceBytes >= 1<<20, "source bytes is %d: want at least 1048576", c.SourceBytes)
	check(c.SourceFiles >= 1 && c.SourceFiles <= 10_000, "source files is %d: want 1 to 10000", c.SourceFiles)
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"status interval", c.StatusInterval}, {"health interval", c.HealthInterval}, {"patience", c.Patience},
		{"call timeout", c.CallTimeout}, {"load timeout", c.LoadTimeout}, {"release timeout", c.ReleaseTimeout},
		{"drain timeout", c.DrainTimeout}, {"source timeout", c.SourceTimeout},
	} {
		check(d.value >= time.Millisecond && d.value <= 24*time.Hour, "%s is %v: want 1ms to 24h", d.name, d.value)
	}
	return errors.Join(bad...)
}

// name is the node's name.
func (c Config) name() string {
	if c.Name == "" {
		return c.Runtime
	}
	return c.Name
}
