package runtimeserver

import (
	"fmt"
	"testing"
	"unicode/utf8"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

// The table is the contract: each row, word for word.
func TestTable(t *testing.T) {
	want := []struct {
		err    error
		code   connect.Code
		reason string
	}{
		{ErrHandlerInvalid, connect.CodeInvalidArgument, "HANDLER_INVALID"},
		{errArgument, connect.CodeInvalidArgument, "INVALID_ARGUMENT"},
		{ErrPayload, connect.CodeInvalidArgument, "INVALID_ARGUMENT"},
		{errNoRun, connect.CodeNotFound, "RUN_NOT_FOUND"},
		{errDigest, connect.CodeAlreadyExists, "REGISTRATION_DIGEST_MISMATCH"},
		{errAttemptStale, connect.CodeFailedPrecondition, "REGISTRATION_ATTEMPT_STALE"},
		{errStale, connect.CodeFailedPrecondition, "REGISTRATION_STALE"},
		{errDraining, connect.CodeFailedPrecondition, "REGISTRATION_DRAINING"},
		{errFailed, connect.CodeFailedPrecondition, "REGISTRATION_FAILED"},
		{errNotReady, connect.CodeFailedPrecondition, "REGISTRATION_NOT_READY"},
		{errActive, connect.CodeResourceExhausted, "INVOCATION_ACTIVE"},
		{ErrHandler, connect.CodeInternal, "HANDLER_ERROR"},
		{ErrResponseTooLarge, connect.CodeResourceExhausted, "RESPONSE_TOO_LARGE"},
		{ErrOutputsTooLarge, connect.CodeResourceExhausted, "OUTPUTS_TOO_LARGE"},
		{ErrOutputsInvalid, connect.CodeInternal, "OUTPUTS_INVALID"},
		{errSuperseded, connect.CodeCanceled, "CANCELED"},
		{errUnregistered, connect.CodeCanceled, "CANCELED"},
		{errStopping, connect.CodeUnavailable, "RUNTIME_UNAVAILABLE"},
		{errFull, connect.CodeUnavailable, "RUNTIME_UNAVAILABLE"},
		{errNoExecution, connect.CodeNotFound, "EXECUTION_NOT_FOUND"},
		{errExecutionExists, connect.CodeAlreadyExists, "EXECUTION_EXISTS"},
		{errRunning, connect.CodeFailedPrecondition, "EXECUTION_RUNNING"},
	}
	if len(want) != len(table) {
		t.Errorf("%d rows are tested, the table has %d", len(want), len(table))
	}
	for i, w := range want {
		err := table.Error(fmt.Errorf("wrapped: %w", w.err), map[string]string{edge.RunUID: "run"})
		if connect.CodeOf(err) != w.code || edge.Reason(err) != w.reason || edge.Info(err).GetMetadata()["run_uid"] != "run" || edge.Info(err).GetDomain() != "hearth" {
			t.Errorf("row %d, %v: %v %s", i, w.err, err, edge.Reason(err))
		}
	}
}

func TestClip(t *testing.T) {
	for _, text := range []string{"", "abc", "ééééé", "\xff\xff\xff\xff\xff\xff", "😀😀😀"} {
		for limit := 4; limit < 12; limit++ {
			for _, got := range []string{clip(text, limit), clipHead(text, limit)} {
				if len(got) > limit || !utf8.ValidString(got) {
					t.Errorf("%q at %d: %q", text, limit, got)
				}
			}
		}
	}
}

func TestConfig(t *testing.T) {
	if err := Default("/w").Validate(); err != nil {
		t.Error(err)
	}
	bad := Config{Workspace: "w", LoadTimeout: -1, MaxRegistrations: -1, RecycleCalls: -1, RecycleAge: -1, RecycleMemory: -1, LogFileBytes: 1, LogLineBytes: 1, LogStreamBytes: 1, LogRuns: -1, Path: "\x00"}
	joined, ok := bad.Validate().(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 11 {
		t.Errorf("not every bad field is named: %v", bad.Validate())
	}
}
