// Package law owns who may import what in this workspace (DESIGN: "Who may
// import and call what"), as a table that its test applies to `go list`.
package law

import (
	"fmt"
	"slices"
	"strings"
)

// Prefix is the module path that every module of the workspace starts with.
const Prefix = "github.com/hearth-run/hearth/"

// Package is what the law needs to know of one package.
type Package struct {
	// Module is the folder of its module: "services/router".
	Module string
	// Path is its folder in the workspace: "services/router/internal/placement".
	Path string
	// Imports are import paths; Tests are those of its tests.
	Imports, Tests []string
	// Machine says that the package is a pure state machine.
	Machine bool
}

// allowed names, for each module, the modules of ours that it may import beside
// itself. A module that is not in the table has no place in the workspace.
var allowed = map[string][]string{
	"gen":                   {},
	"pyrunner":              {},
	"sandbox":               {},
	"examples":              {},
	"internal/kit":          {"gen"},
	"adapters":              {"gen", "internal/kit", "pyrunner", "sandbox"},
	"bench":                 {"gen", "internal/kit", "pyrunner", "sandbox"},
	"services/controlplane": {"gen", "internal/kit"},
	"services/runtimed":     {"gen", "internal/kit"},
	"services/gateway":      {"gen", "internal/kit"},
	"services/router":       {"gen", "internal/kit"},
	"services/worker":       {"gen", "internal/kit", "pyrunner", "sandbox"},
	"hearth": {
		"gen", "internal/kit", "pyrunner", "sandbox", "adapters", "services/controlplane",
		"services/runtimed", "services/gateway", "services/router", "services/worker", "examples",
	},
}

// impure are what a machine must not import: no context, log, lock or I/O.
var impure = []string{"context", "io", "log", "log/slog", "net", "os", "sync", "sync/atomic", "testing/synctest"}

// Check returns every breach of the law by one package.
func Check(p Package) []string {
	var breaches []string
	say := func(format string, args ...any) {
		breaches = append(breaches, p.Path+": "+fmt.Sprintf(format, args...))
	}
	may, known := allowed[p.Module]
	if !known {
		say("module %s is not in the law's table", p.Module)
	}
	for _, path := range slices.Concat(p.Imports, p.Tests) {
		if ours, ok := strings.CutPrefix(path, Prefix); ok {
			if to := moduleOf(ours); to != p.Module && !slices.Contains(may, to) {
				say("imports %s: %s may import of ours only %v", ours, p.Module, may)
			}
		}
	}
	if p.Machine {
		for _, path := range p.Imports {
			switch {
			case strings.Contains(path, "."):
				say("is a machine and imports %s: the standard library only", path)
			case slices.Contains(impure, path):
				say("is a machine and imports %s: no context, log, lock or I/O in a machine", path)
			}
		}
	}
	return breaches
}

// moduleOf returns the module of a workspace path, or the path itself.
func moduleOf(path string) string {
	for module := range allowed {
		if path == module || strings.HasPrefix(path, module+"/") {
			return module
		}
	}
	return path
}
