package cli

// workerCmds are a worker itself, which is what `hearth worker` alone means, and
// the view on those that a router knows.
type workerCmds struct {
	Serve workerServeCmd `cmd:"" default:"withargs" help:"Run a worker alone."`
}
