// Package command owns how the commands of Runtime Servers read their settings.
package command

import (
	"log/slog"
	"os"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/config"
	"github.com/hearth-run/hearth/internal/kit/logs"
)

// Flags is what every Runtime Server can be told.
type Flags struct {
	runtimeserver.Process `embed:""`
	Log                   logs.Config `embed:"" prefix:"log-"`
}

// Parse fills target, a struct with flags in it, from the command line and the
// environment. It ends the process with a message where they are wrong.
func Parse(target any, flags *Flags, listen string) (*kong.Kong, *slog.Logger) {
	parser, err := config.Parser(target, kong.Vars{"listen": listen})
	if err != nil {
		panic(err) // a mistake in the tags of this module
	}
	_, err = parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(err)
	parser.FatalIfErrorf(config.CheckEnviron(parser, os.Environ()))
	log, err := logs.New(os.Stderr, flags.Log)
	parser.FatalIfErrorf(err)
	if _, set := os.LookupEnv("GOMAXPROCS"); !set {
		yield()
	}
	return parser, log
}

// yield leaves half of the cores to functions: a Runtime Server hands over what
// they take and give, and pays for each further core with threads that wake each
// other for every call.
func yield() { runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/2)) }
