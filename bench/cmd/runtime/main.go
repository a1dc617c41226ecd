// Command runtime measures InvokeFunction of the real Runtime Servers over a unix
// socket, in one run on one machine beside two things: the floor, which is the same
// warm loop with no server around it, and a Runtime that starts a process per call.
// It also measures what a call costs that follows one that ran into its deadline.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

type flags struct {
	Lasting   time.Duration `help:"How long one measurement lasts." default:"1s"`
	Rounds    int           `help:"How often each is measured, in turns." default:"3"`
	Sizes     []int         `help:"Bytes of the payload, 16 to 1048576 each." default:"100,10240,204800,1048576"`
	Runtimes  []string      `help:"Runtimes to measure." default:"python,bash" enum:"python,bash"`
	Python    string        `help:"Interpreter for all that is Python here: a name on PATH or a path." default:"python3"`
	Numpy     bool          `help:"Make a virtual environment with numpy for the calls after a deadline, with pip. Without it they import numpy where --python has it, and modules of Python itself where not."`
	Deadlines int           `help:"How many calls run into their deadline; 0 leaves this part out." default:"20"`

	PerCall string `hidden:"" help:"Be the Runtime that starts a process per call, for this language."`
	Socket  string `hidden:"" help:"Where it listens."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var f flags
	kong.Parse(&f, kong.Description("Measures Runtime Servers beside their floor and beside a process per call."))
	work := func() error { return measure(ctx, f) }
	if f.PerCall != "" {
		work = func() error { return servePerCall(ctx, f) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "runtime:", err)
		os.Exit(1)
	}
}
