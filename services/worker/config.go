package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/hearth-run/hearth/gen/serverless/serverlessconnect"
	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/services/worker/internal/hotset"
)

// Config says what a worker offers and where it keeps its things. The tags are for
// commands.
type Config struct {
	// ID is the worker's name among its routers, 1 to 128 bytes.
	ID string `name:"id" help:"Name of the worker among its routers." default:"worker-1"`
	// Address is where routers reach ExecutionService: a URL, "unix:PATH" or
	// "inprocess:NAME". Empty: where it listens.
	Address string `name:"advertise" help:"Address that routers shall use; empty: where it listens."`
	// Flavor is "cpu" or "gpu".
	Flavor string `help:"cpu, or gpu for a machine with both." enum:"cpu,gpu" default:"cpu"`
	// Memory is what the worker gives out to containers, in bytes.
	Memory int64 `help:"Memory for containers, in bytes." default:"4294967296"`
	// GPUMemory is what it offers of GPU memory, in bytes.
	GPUMemory int64 `name:"gpu-memory" help:"GPU memory on offer, in bytes." default:"0"`
	// MaxContainers is how many there may be at one time; 0 is unbounded.
	MaxContainers int `help:"Containers at one time; 0 is unbounded." default:"256"`
	// DataDir holds the Python environment, installed packages and sockets.
	DataDir string `name:"worker-data" help:"Folder for the Python environment, installed packages and sockets." placeholder:"DIR"`
	// Python names an interpreter with cloudpickle; empty: the worker makes an
	// environment of its own at the first start.
	Python string `name:"executor-python" help:"Interpreter with cloudpickle to run executions; empty: one is made at the first start." placeholder:"PATH"`
	// EnvPackages are requirements that the worker's own environment is made with:
	// every container sees them, and zygotes can import them. Not with Python.
	EnvPackages []string `name:"env-package" sep:"none" help:"PyPI requirement for the worker's own environment, where zygotes can import it; may be repeated." placeholder:"REQ"`
	// ZygoteMemory is for zygotes and the containers that are made ahead, beside
	// Memory, in bytes; 0: there are none, every start is cold.
	ZygoteMemory int64 `help:"Memory for zygotes and containers made ahead, beside that for containers, in bytes; 0: every start is cold." default:"536870912"`
	// ZygotePool is how many containers at most stand ready before one zygote; 0:
	// each is forked when its call comes.
	ZygotePool int `help:"Containers that stand ready before one zygote at most; 0: none is made ahead." default:"16"`
	// Zygotes are import sets that are kept warm whatever calls them, each as
	// "pandas,numpy".
	Zygotes []string `name:"zygote" sep:"none" help:"Imports to keep warm whatever calls them, as pandas,numpy; may be repeated." placeholder:"MODULES"`
	// ImportTimeout bounds the import of one module of a zygote.
	ImportTimeout time.Duration `help:"Time for a zygote to import one module." default:"30s"`
	// InstallArgs are added to the package installer's command line.
	InstallArgs []string `help:"Arguments for the package installer, say an index of your own." placeholder:"ARG"`
	// Network is what containers see: "none" or "host".
	Network string `help:"What containers see: none, or host." enum:"none,host" default:"none"`
	// DefaultMemory is the budget of a call that names none, in bytes.
	DefaultMemory int64 `help:"Memory of a call that asks for none, in bytes." default:"1073741824"`
	// ScratchBytes bounds /tmp of a container; it counts against its memory.
	ScratchBytes int64 `help:"Size of a container's /tmp, in bytes." default:"268435456"`
	// MaxPids bounds the processes and threads of a container.
	MaxPids int64 `help:"Processes and threads of a container." default:"256"`
	// MilliCPU bounds a container in thousandths of a CPU; 0 is no bound.
	MilliCPU int64 `name:"milli-cpu" help:"CPU of a container, in thousandths; 0 is no bound." default:"0"`
	// OutputLimit is how much printed output of one call is captured, in bytes.
	OutputLimit int64 `help:"Printed output of one call that is kept, in bytes." default:"1048576"`
	// ReplayLimit is the largest body that is kept for the one retry after an
	// out-of-memory kill, in bytes.
	ReplayLimit int64 `help:"Largest body that is tried again after an out-of-memory kill, in bytes." default:"8388608"`
	// IdleTimeout ends a session's container that nobody calls.
	IdleTimeout time.Duration `help:"Time without a call after which a session's container ends." default:"5m"`
	// StartTimeout bounds the start of a container up to its executor's answer.
	StartTimeout time.Duration `help:"Time for a container to start." default:"30s"`
	// UtilizationInterval is how often load is reported.
	UtilizationInterval time.Duration `help:"How often load is reported to routers." default:"10s"`
	// Drain is how long calls may go on after the stop.
	Drain time.Duration `help:"Time for calls to end after the stop." default:"4s"`
}

// Default returns the settings of a worker that has only Address and DataDir left
// to name.
func Default() Config {
	return Config{
		ID:                  "worker-1",
		Flavor:              "cpu",
		Network:             "none",
		Memory:              4 << 30,
		MaxContainers:       256,
		DefaultMemory:       1 << 30,
		ScratchBytes:        256 << 20,
		MaxPids:             256,
		ZygoteMemory:        512 << 20,
		ZygotePool:          16,
		ImportTimeout:       30 * time.Second,
		OutputLimit:         1 << 20,
		ReplayLimit:         8 << 20,
		IdleTimeout:         5 * time.Minute,
		StartTimeout:        30 * time.Second,
		UtilizationInterval: 10 * time.Second,
		Drain:               4 * time.Second,
	}
}

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// Validate names every bad field at once.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("worker: "+format, args...))
		}
	}
	check(idPattern.MatchString(c.ID), "id %q: want 1 to 128 of A-Z a-z 0-9 . _ -, the first alphanumeric", c.ID)
	check(c.Flavor == "cpu" || c.Flavor == "gpu", "flavor %q: want cpu or gpu", c.Flavor)
	check(c.Network == "none" || c.Network == "host", "network %q: want none or host", c.Network)
	check(c.Memory >= sandbox.MinMemory, "memory %d: want at least %d bytes", c.Memory, sandbox.MinMemory)
	check(c.GPUMemory >= 0, "gpu memory %d: must not be negative", c.GPUMemory)
	check(c.MaxContainers >= 0, "max containers %d: must not be negative; 0 is unbounded", c.MaxContainers)
	check(filepath.IsAbs(c.DataDir), "data folder %q: must be an absolute path", c.DataDir)
	check(c.DefaultMemory >= sandbox.MinMemory, "default memory %d: want at least %d bytes", c.DefaultMemory, sandbox.MinMemory)
	check(c.ScratchBytes > 0, "scratch %d: must be above 0 bytes", c.ScratchBytes)
	check(c.Python == "" || len(c.EnvPackages) == 0, "env packages %v: they go into the worker's own environment; install them into %s yourself, or name no interpreter", c.EnvPackages, c.Python)
	check(c.ZygoteMemory == 0 || c.ZygoteMemory >= leastZygotes, "zygote memory %d: want 0 (none) or at least %d bytes", c.ZygoteMemory, int64(leastZygotes))
	check(c.ZygotePool >= 0 && c.ZygotePool <= 256, "zygote pool %d: want 0 to 256", c.ZygotePool)
	for _, pin := range c.Zygotes {
		check(len(pinned(pin)) > 0, "zygote %q: want top-level modules, as pandas,numpy", pin)
	}
	check(c.MaxPids >= 8, "max pids %d: want at least 8", c.MaxPids)
	check(c.OutputLimit > 0, "output limit %d: must be above 0 bytes", c.OutputLimit)
	check(c.ReplayLimit >= 0, "replay limit %d: must not be negative", c.ReplayLimit)
	for name, d := range map[string]time.Duration{"idle timeout": c.IdleTimeout, "start timeout": c.StartTimeout, "import timeout": c.ImportTimeout, "utilization interval": c.UtilizationInterval, "drain": c.Drain} {
		check(d > 0, "%s %v: must be above 0", name, d)
	}
	return errors.Join(errs...)
}

// leastZygotes is what the root and a few containers of it need, in bytes.
const leastZygotes = 32 << 20

// pinned are the modules of one pin, none if it is none.
func pinned(pin string) []string {
	names := strings.Split(pin, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	if tops := hotset.Tops(names); len(tops) == len(names) {
		return tops
	}
	return nil
}

// Deps are what a worker works with.
type Deps struct {
	Log *slog.Logger
	// Routers are all told of every state.
	Routers []serverlessconnect.RegistryServiceClient
	// Driver builds the walls. The worker closes it.
	Driver sandbox.Driver
	// Address says where the worker listens, for a Config that names no Address.
	Address func() string
}
