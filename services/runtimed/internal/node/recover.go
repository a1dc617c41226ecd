package node

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hearth-run/hearth/services/runtimed/internal/ledger"
	"github.com/hearth-run/hearth/services/runtimed/internal/upstream"
	"github.com/hearth-run/hearth/services/runtimed/internal/vigil"
)

// executionID names the execution of an attempt, RUN_UID.ATTEMPT.NODE: the same in
// every repeat, and no other node's or client's of the Runtime Server.
func (n *Node) executionID(run string, attempt int32) string {
	return fmt.Sprintf("%s.%d.%s", run, attempt, n.cfg.Name)
}

// attemptOf is its inverse; ours is false for ids that this node does not give.
func (n *Node) attemptOf(id string) (run string, attempt int32, ours bool) {
	run, rest, _ := strings.Cut(id, ".")
	digits, _, _ := strings.Cut(rest, ".")
	number, err := strconv.ParseInt(digits, 10, 32)
	attempt = int32(number)
	return run, attempt, err == nil && run != "" && n.executionID(run, attempt) == id
}

// recover asks what the Runtime Server executes, and enters into the ledger what that
// does not know: its assignment then takes it up, and what has none is swept, as
// anything else of the ledger. Earlier attempts of what the ledger knows are ended.
// Errors: the Runtime Server does not answer; the ledger's.
func (n *Node) recover(ctx context.Context, endings *sync.WaitGroup) error {
	ids, err := n.server.Executions(ctx)
	if err != nil && upstream.There(err) {
		n.log.Warn("what the ledger does not know of is left on the Runtime Server", "cause", err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, id := range ids {
		run, attempt, ours := n.attemptOf(id)
		if !ours {
			continue
		}
		stale, err := n.enter(ledger.Record{RunUID: run, Attempt: attempt, ExecutionID: id})
		if err != nil {
			return err
		}
		if stale != "" {
			endings.Go(func() { n.end(ctx, stale) })
		}
	}
	return nil
}

// enter lets the ledger know of an execution. stale is the one that has to end, since
// the Run has a later attempt.
func (n *Node) enter(found ledger.Record) (stale string, err error) {
	known, had := n.ledger.Get(found.RunUID)
	switch {
	case had && known.Attempt == found.Attempt:
		return "", nil
	case had && known.Attempt > found.Attempt:
		return found.ExecutionID, nil
	}
	n.log.Info("an execution is recovered", "execution_id", found.ExecutionID)
	return known.ExecutionID, n.ledger.Put(found)
}

// end ends an execution, within the time of a release. One that does not hear it is
// found again when the Runtime Server was away.
func (n *Node) end(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Release)
	defer cancel()
	if err := n.server.Forget(ctx, id); err != nil {
		n.log.Warn("an earlier attempt is left on the Runtime Server", "execution_id", id, "cause", err)
	}
}

// record is what the ledger says of the Run. That it knows nothing counts, for all
// but functions, once the Runtime Server was asked what it executes.
// Errors: *upstream.Failure, if it cannot be asked; ctx's cause.
func (o *owner) record(ctx context.Context) (rec ledger.Record, had bool, err error) {
	run := o.a.GetRunUid()
	if rec, had = o.ledger.Get(run); had || o.a.GetSpec().GetFunction() != nil {
		return rec, had, nil
	}
	timer := time.NewTimer(o.cfg.Patience)
	defer timer.Stop()
	select {
	case <-o.shaken:
		rec, had = o.ledger.Get(run)
		return rec, had, nil
	case <-timer.C:
		return rec, false, &upstream.Failure{Reason: vigil.Unavailable, Message: fmt.Sprintf("the Runtime Server has not answered for %v", o.cfg.Patience)}
	case <-ctx.Done():
		return rec, false, context.Cause(ctx)
	}
}
