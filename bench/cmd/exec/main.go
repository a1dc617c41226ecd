// Command exec measures executions through a real `hearth up`, from the call to its
// value: cold, forked from a zygote, found ready, in a session; then what each wall costs,
// and a pool of processes and Dask, which isolate nothing: in one run on one machine. It
// needs root, as the walls do, and a package index or what an earlier run left in --data.
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
	Hearth    string        `help:"The hearth program; empty: it is built from this workspace."`
	Data      string        `help:"Folder for the Python environments, kept; empty: a temporary one." placeholder:"DIR"`
	Lasting   time.Duration `help:"How long one measurement lasts." default:"3s"`
	Rounds    int           `help:"How often each is measured, in turns." default:"2"`
	Callers   []int         `help:"How many callers at once." default:"1,16"`
	Ways      []string      `help:"Ways to measure." default:"cold,zygote,ready,paced,session"`
	Sustained time.Duration `help:"How long isolated calls are sustained." default:"10s"`
	Walls     int           `help:"How often each set of walls is measured; 0: not at all." default:"100"`
	Peers     bool          `help:"Measure ProcessPoolExecutor and Dask too." default:"true" negatable:""`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var f flags
	kong.Parse(&f, kong.Description("Measures executions from the call to its value."))
	if err := measure(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "exec:", err)
		os.Exit(1)
	}
}
