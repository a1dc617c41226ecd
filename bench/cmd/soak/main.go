// Command soak makes many calls in a row through a real `hearth up` and prints
// what the house holds meanwhile: its memory, descriptors, threads, processes,
// mounts and files. A house that keeps nothing of a call has a flat series.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type flags struct {
	Plane   string `help:"What is called: executions (a fresh sandbox each), sessions (one container), functions." enum:"executions,sessions,functions" default:"executions"`
	Calls   int    `help:"How many calls." default:"10000"`
	Every   int    `help:"Calls between two lines of the table." default:"500"`
	Callers int    `help:"How many callers share the calls." default:"1"`
	Runtime string `help:"Runtime of the function." enum:"python,bash" default:"python"`
	Hearth  string `help:"The hearth program; empty: it is built from this workspace."`
	Chart   bool   `help:"Print the series as a Mermaid chart too."`
	Python  string `help:"Interpreter with cloudpickle for the worker; empty: it makes an environment."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var f flags
	kong.Parse(&f, kong.Description("Makes many calls in a row and prints what they leave behind."))
	if err := soak(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}
