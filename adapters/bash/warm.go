package bash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// warm is one bash that has sourced the file, with its channels.
type warm struct {
	leader   *process.Leader
	channels *channels
	reports  chan string
	reporter sync.WaitGroup
	waiting  int            // the call that a subshell waits for, 0 for none
	resting  bool           // it has loaded and waits for the word to go on
	loading  *tail          // of stderr while loading
	outside  []*os.File     // what is written outside of calls
	readers  sync.WaitGroup // of that
}

// start starts a bash and waits until it has sourced the file; then it rests. When
// it fails nothing is left.
func (i *instance) start(ctx context.Context) (*warm, error) {
	channels, err := openChannels()
	if err != nil {
		return nil, err
	}
	w := &warm{channels: channels, reports: make(chan string, 16), loading: &tail{bound: runtimeserver.MaxFatalError / 2}}
	w.reporter.Go(func() { channels.report(w.reports) })
	if err := w.launch(i); err != nil {
		return nil, errors.Join(err, w.close())
	}
	if err := i.loaded(ctx, w); err != nil {
		return nil, errors.Join(err, i.f.Processes.Kill(), w.close())
	}
	return w, nil
}

// launch starts the process, with what it writes outside of calls on two pipes
// of their own.
func (w *warm) launch(i *instance) error {
	out, err := newPipe()
	if err != nil {
		return err
	}
	defer out.write.Close()
	w.outside = append(w.outside, out.read)
	errs, err := newPipe()
	if err != nil {
		return err
	}
	defer errs.write.Close()
	w.outside = append(w.outside, errs.read)

	home, err := i.f.Processes.Home()
	if err != nil {
		return err
	}
	args := append([]string{"--norc", "--noprofile", "-c", driver, "hearth", i.file, i.function}, w.channels.numbers()...)
	cmd := exec.Command(i.bash, append(args, home)...)
	cmd.Dir = i.f.Dir
	cmd.Env = i.f.Env
	cmd.Stdout, cmd.Stderr = out.write, errs.write
	if w.leader, err = i.f.Processes.Start(cmd); err != nil {
		return err
	}
	w.readers.Go(func() { copyLog(i.f.Logs, runtimeserver.Stdout, out.read, io.Discard) })
	w.readers.Go(func() { copyLog(i.f.Logs, runtimeserver.Stderr, errs.read, w.loading) })
	return nil
}

// copyLog takes what is written outside of calls, by the load or by what it left
// running, until nobody has the pipe any more.
func copyLog(logs runtimeserver.LogSink, stream runtimeserver.Stream, from *os.File, also io.Writer) {
	log := logs.Writer("", stream)
	defer log.Close()
	_, _ = io.Copy(io.MultiWriter(also, log), from)
}

// loaded waits for the report on the load.
func (i *instance) loaded(ctx context.Context, w *warm) error {
	line := ""
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case line = <-w.reports:
	case <-w.leader.Done():
		// It may have reported before it ended: our own line marks the place.
		if _, err := fmt.Fprintln(w.channels.status.write, "over"); err != nil {
			return err
		}
		line = <-w.reports
	}
	switch line {
	case "loaded 0", "loaded 1":
		left := line == "loaded 1"
		killed, err := w.settle(i.f.Processes, left)
		if killed > 0 || left && i.f.Processes.Path() != "" {
			i.f.Logs.Entry("", "warn", i.stem()+".sh has left processes running while it was sourced; they were ended")
		}
		w.resting = true
		return err
	case "no-function":
		return edge.Publicf(runtimeserver.ErrHandlerInvalid, "%s.sh defines no function %s%s", i.stem(), i.function, i.fromWindows())
	}
	// Whatever it was, it is over: the end of stderr says what was wrong.
	if err := i.f.Processes.Kill(); err != nil {
		return err
	}
	w.hearOut()
	said := strings.TrimSpace(w.loading.String())
	return &runtimeserver.LoadError{Text: i.explain(line, w.leader.State(), said)}
}

// hearOut waits for the last words. The pipes end with their last writer, which
// is dead; one that escaped, where there are no cgroups, is not waited for.
func (w *warm) hearOut() {
	for _, f := range w.outside {
		_ = f.SetReadDeadline(time.Now().Add(time.Second))
	}
	w.readers.Wait()
}

// close waits for the readers and closes the files. Every process is dead.
func (w *warm) close() error {
	w.hearOut()
	var errs []error
	for _, f := range w.outside {
		errs = append(errs, f.Close())
	}
	errs = append(errs, w.channels.close())
	for range w.reports { // its writer may be waiting for a reader
	}
	w.reporter.Wait()
	return errors.Join(errs...)
}

// explain says why a load failed, with the way out where it is known.
func (i *instance) explain(report string, state *os.ProcessState, said string) string {
	said = strings.ReplaceAll(said, i.file, i.stem()+".sh")
	how := fmt.Sprintf("%s.sh could not be loaded", i.stem())
	if status, ok := strings.CutPrefix(report, "sourced "); ok {
		how = fmt.Sprintf("%s.sh ended with status %s while it was sourced: let its last command succeed (a line with only : does) or find out what failed", i.stem(), status)
	} else if report != "syntax" {
		how = fmt.Sprintf("%s.sh exited with %s while it was sourced: it must only define things", i.stem(), strings.TrimPrefix(state.String(), "exit "))
	}
	how += i.fromWindows()
	if said != "" {
		how += "\n" + said
	}
	return how
}
