// Command invoke measures calls of functions through a real `hearth up`, beside
// the floor of a bare net/http JSON echo, in one run on one machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/hearth-run/hearth/bench/internal/peer"
)

type flags struct {
	Hearth   string        `help:"The hearth program; empty: it is built from this workspace."`
	Lasting  time.Duration `help:"How long one measurement lasts." default:"2s"`
	Rounds   int           `help:"How often each is measured, in turns." default:"3"`
	Callers  []int         `help:"How many callers at once." default:"1,16"`
	Payload  int           `help:"Bytes of the payload, at least 16." default:"100"`
	Runtimes []string      `help:"Runtimes to measure." default:"python,bash"`
	Echo     bool          `hidden:"" help:"Be the echo."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var f flags
	kong.Parse(&f, kong.Description("Measures calls of functions beside a bare JSON echo."))
	work := func() error { return measure(ctx, f) }
	if f.Echo {
		work = func() error { return peer.Echo(ctx, os.Stdout) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "invoke:", err)
		os.Exit(1)
	}
}
