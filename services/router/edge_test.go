package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/router/internal/cluster"
	"github.com/hearth-run/hearth/services/router/internal/pep508"
	"github.com/hearth-run/hearth/services/router/internal/placement"
	"github.com/hearth-run/hearth/services/router/internal/sessions"
)

// Every row of the edge, wrapped as the service wraps it.
func TestEdge(t *testing.T) {
	seen := map[error]bool{}
	for _, tc := range []struct {
		err    error
		code   connect.Code
		reason string
		text   string
	}{
		{errFirst, connect.CodeInvalidArgument, "FIRST_MESSAGE_INVALID", "config"},
		{errSecondConfig, connect.CodeInvalidArgument, "SECOND_CONFIG", "first message"},
		{errBudget, connect.CodeInvalidArgument, "BUDGET_INVALID", "budget"},
		{errPackage, connect.CodeInvalidArgument, "PACKAGE_INVALID", "package"},
		{errCheckpoint, connect.CodeInvalidArgument, "CHECKPOINT_UNKNOWN", "catalogue"},
		{errStatus, connect.CodeInvalidArgument, "STATUS_INVALID", "READY"},
		{errToken, connect.CodeUnauthenticated, "TOKEN_INVALID", "Bearer"},
		{cluster.ErrInFlight, connect.CodeAlreadyExists, "REQUEST_IN_FLIGHT", "request_id"},
		{sessions.ErrExpired, connect.CodeNotFound, "SESSION_EXPIRED", "new session"},
		{placement.ErrContainerGone, connect.CodeNotFound, "SESSION_EXPIRED", "new session"},
		{placement.ErrRestored, connect.CodeFailedPrecondition, "SESSION_RESTORED", "disable_optimized_execution"},
		{placement.ErrNoWorker, connect.CodeUnavailable, "NO_WORKER", "worker"},
		{placement.ErrPreparing, connect.CodeUnavailable, "WORKER_PREPARING", "being prepared"},
		{placement.ErrWorkerNotReady, connect.CodeUnavailable, "WORKER_NOT_READY", "worker"},
		{placement.ErrNoneFits, connect.CodeResourceExhausted, "NO_CAPACITY", "room"},
		{cluster.ErrQueueFull, connect.CodeResourceExhausted, "QUEUE_FULL", "too many"},
		{cluster.ErrSessionWait, connect.CodeResourceExhausted, "SESSION_WAIT_OVER", "too long"},
		{cluster.ErrWorkerLost, connect.CodeUnavailable, "WORKER_LOST", "lost"},
		{errUnknownWorker, connect.CodeNotFound, "WORKER_UNKNOWN", "registered"},
		{errUnreachable, connect.CodeUnavailable, "WORKER_UNREACHABLE", "reached"},
		{errBroken, connect.CodeUnavailable, "WORKER_LOST", "lost"},
		{errClientGone, connect.CodeCanceled, "CANCELED", "went away"},
		{errStopping, connect.CodeUnavailable, "SHUTTING_DOWN", "shutting down"},
	} {
		seen[tc.err] = true
		err := atEdge(fmt.Errorf("somewhere inside: %w", tc.err), map[string]string{"request_id": "r", "session_id": ""})
		if connect.CodeOf(err) != tc.code || edge.Reason(err) != tc.reason || !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "inside") {
			t.Errorf("%v: %v, reason %q", tc.err, err, edge.Reason(err))
		}
		if meta := edge.Info(err).GetMetadata(); len(meta) != 1 || meta["request_id"] != "r" {
			t.Errorf("%v: metadata %v", tc.err, meta)
		}
	}
	for _, row := range edgeTable {
		if !seen[row.Err] {
			t.Errorf("the row of %v has no test", row.Err)
		}
	}
}

// A call that the router ended says why it did, not what its worker made of that; a
// worker that refused it has still not run it.
func TestJudgeEnded(t *testing.T) {
	d := &dispatch{body: newBody(1)}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errSecondConfig)
	answered := connect.NewError(connect.CodeInvalidArgument, "the first message must be a header").WithRemote()
	full := connect.NewError(connect.CodeResourceExhausted, "full").WithRemote()
	if r := d.judge(ended, &relay{dispatch: d}, answered); !errors.Is(r.err, errSecondConfig) || r.again || r.outcome != sessions.Failed {
		t.Errorf("answered after the end: %+v", r)
	}
	if r := d.judge(t.Context(), &relay{dispatch: d}, answered); !errors.Is(r.err, answered) || r.again || r.outcome != sessions.Failed {
		t.Errorf("answered: %+v", r)
	}
	if r := d.judge(ended, &relay{dispatch: d}, full); r.outcome != sessions.Untouched || !r.again {
		t.Errorf("refused after the end: %+v", r)
	}
}

// What stands in no row.
func TestEdgeBeside(t *testing.T) {
	_, pep := pep508.Parse("-e .")
	remote := connect.NewError(connect.CodeDataLoss, "said").WithRemote()
	for name, tc := range map[string]struct {
		err    error
		code   connect.Code
		reason string
		text   string
	}{
		"a package's own text": {fmt.Errorf("%w: %w", errPackage, pep), connect.CodeInvalidArgument, "PACKAGE_INVALID", `"-e ."`},
		"a public text":        {publicly(errBudget, "two of %s", "x"), connect.CodeInvalidArgument, "BUDGET_INVALID", "two of x"},
		"a worker's verdict":   {&verdict{remote}, connect.CodeDataLoss, "DATA_LOSS", "said"},
		"canceled":             {context.Canceled, connect.CodeCanceled, "CANCELED", "went away"},
		"deadline":             {context.DeadlineExceeded, connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED", "deadline"},
		"a peer's, unjudged":   {remote, connect.CodeInternal, "INTERNAL", "internal"},
		"anything":             {errors.New("secret"), connect.CodeInternal, "INTERNAL", "internal"},
	} {
		err := atEdge(tc.err, nil)
		if connect.CodeOf(err) != tc.code || edge.Reason(err) != tc.reason || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %v, reason %q", name, err, edge.Reason(err))
		}
	}
	if atEdge(nil, nil) != nil {
		t.Error("no error became one")
	}
}

func TestConfig(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	err := Config{Attempts: 100, ReplayBytes: -1, QueueWait: -1}.Validate()
	for _, field := range []string{
		"default_memory", "fill", "session_wait", "queue_wait", "queue_max", "execution_timeout", "attempts", "replay_bytes",
		"probe_every", "probe_timeout", "probe_failures", "silence", "tombstones", "tombstone_age",
	} {
		if err == nil || !strings.Contains(err.Error(), field+" is") {
			t.Errorf("%s is not named in %v", field, err)
		}
	}
	if _, err := New(Config{}, Deps{}); err == nil {
		t.Error("an empty configuration was taken")
	}
	broken := Default()
	broken.CatalogueDir = "/nowhere"
	if _, err := New(broken, Deps{}); err == nil {
		t.Error("a missing folder of catalogues was taken")
	}
}
