package runtimeserver

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"
)

// Config says how a Runtime Server works. The zero value of a field is its
// default, but for Workspace, which must be set.
type Config struct {
	// Workspace is the folder beneath which every working directory lies. The
	// server keeps its own things in Workspace/.hearth: logs/RUN_UID.jsonl (the
	// Runs' logs; see package runlog), tmp-RUNTIME (folders that TMPDIR and HOME
	// name) and what it needs to sweep after a crash. Servers of different
	// Runtimes can share a workspace.
	Workspace string `help:"Folder beneath which every working directory lies." required:""`
	// LoadTimeout is how long a load may take; 60 s.
	LoadTimeout time.Duration `help:"How long loading a function may take." default:"60s"`
	// MaxRegistrations is how many functions may be registered at once; 1 024.
	MaxRegistrations int `help:"How many functions may be registered at once." default:"1024"`
	// Path, Lang and TimeZone are what user code finds in PATH, LANG and TZ.
	Path     string `name:"user-path" help:"PATH of user code." default:"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"`
	Lang     string `name:"user-lang" help:"LANG of user code." default:"C.UTF-8"`
	TimeZone string `name:"user-tz" help:"TZ of user code." default:"UTC"`
	// NoCgroup uses process groups and /proc where cgroups would be possible.
	NoCgroup bool `help:"Use process groups where cgroups would be possible."`

	// Recycling loads a new instance beside one that is used up and puts it in its
	// place between two calls. Zero values never recycle.
	// RecycleCalls is after how many calls; RecycleAge and RecycleMemory (bytes,
	// of all its processes) are looked at after each call.
	RecycleCalls  int           `help:"Load a function afresh after so many calls; 0 is never."`
	RecycleAge    time.Duration `help:"Load a function afresh when its instance is older; 0 is never."`
	RecycleMemory int64         `help:"Load a function afresh when its processes hold more bytes; 0 is never."`

	// LogFileBytes, LogLineBytes and LogStreamBytes bound a Run's log: where its
	// file is rotated (4 MiB, two are kept), one message (16 KiB), and one stream
	// of one invocation (512 KiB). LogRuns is how many Runs' logs are kept; 1 000.
	LogFileBytes   int64 `help:"Bytes at which a Run's log is rotated; two files are kept." default:"4194304"`
	LogLineBytes   int   `help:"Bytes of one log entry; a longer line keeps head and tail." default:"16384"`
	LogStreamBytes int64 `help:"Bytes of one stream of one invocation that reach the log." default:"524288"`
	LogRuns        int   `help:"How many Runs' logs are kept." default:"1000"`
}

// Default returns the defaults for a workspace.
func Default(workspace string) Config {
	return Config{
		Workspace:        workspace,
		LoadTimeout:      time.Minute,
		MaxRegistrations: 1024,
		Path:             "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		Lang:             "C.UTF-8",
		TimeZone:         "UTC",
		LogFileBytes:     4 << 20,
		LogLineBytes:     16 << 10,
		LogStreamBytes:   512 << 10,
		LogRuns:          1000,
	}
}

// withDefaults fills in what was left zero.
func (c Config) withDefaults() Config {
	d := Default(c.Workspace)
	fill(&c.LoadTimeout, d.LoadTimeout)
	fill(&c.MaxRegistrations, d.MaxRegistrations)
	fill(&c.Path, d.Path)
	fill(&c.Lang, d.Lang)
	fill(&c.TimeZone, d.TimeZone)
	fill(&c.LogFileBytes, d.LogFileBytes)
	fill(&c.LogLineBytes, d.LogLineBytes)
	fill(&c.LogStreamBytes, d.LogStreamBytes)
	fill(&c.LogRuns, d.LogRuns)
	return c
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate names every bad field at once.
func (c Config) Validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(c.Workspace == "", "workspace: is empty; name the folder beneath which working directories lie")
	bad(c.Workspace != "" && !filepath.IsAbs(c.Workspace), "workspace %q: must be absolute", c.Workspace)
	bad(c.LoadTimeout < 0 || c.LoadTimeout > time.Hour, "load timeout %s: use 0 (60 s) to 1 h", c.LoadTimeout)
	bad(c.MaxRegistrations < 0, "max registrations %d: use 0 (1024) or more", c.MaxRegistrations)
	bad(c.RecycleCalls < 0, "recycle calls %d: use 0 (never) or more", c.RecycleCalls)
	bad(c.RecycleAge < 0, "recycle age %s: use 0 (never) or more", c.RecycleAge)
	bad(c.RecycleMemory < 0, "recycle memory %d: use 0 (never) or a number of bytes", c.RecycleMemory)
	bad(c.LogFileBytes < 0 || c.LogFileBytes > 0 && c.LogFileBytes < 64<<10, "log file bytes %d: use 0 (4 MiB) or at least 64 KiB", c.LogFileBytes)
	bad(c.LogLineBytes < 0 || c.LogLineBytes > 0 && c.LogLineBytes < 256, "log line bytes %d: use 0 (16 KiB) or at least 256", c.LogLineBytes)
	bad(c.LogStreamBytes < 0 || c.LogStreamBytes > 0 && c.LogStreamBytes < 1<<10, "log stream bytes %d: use 0 (512 KiB) or at least 1 KiB", c.LogStreamBytes)
	bad(c.LogRuns < 0, "log runs %d: use 0 (1000) or more", c.LogRuns)
	for name, value := range map[string]string{"path": c.Path, "lang": c.Lang, "time zone": c.TimeZone} {
		bad(strings.ContainsRune(value, 0), "%s: holds a NUL", name)
	}
	return errors.Join(errs...)
}

// Deps is what a server is given.
type Deps struct {
	Log *slog.Logger
	// Language runs the functions.
	Language Language
}
