package api

import (
	"fmt"
	"testing"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/controlplane/internal/admission"
	"github.com/hearth-run/hearth/services/controlplane/internal/archive"
	"github.com/hearth-run/hearth/services/controlplane/internal/journal"
	"github.com/hearth-run/hearth/services/controlplane/internal/ledger"
	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/nodes"
)

// Clients branch on codes and reasons: each row stands here a second time.
func TestTable(t *testing.T) {
	rows := []struct {
		err    error
		code   connect.Code
		reason string
	}{
		{ledger.ErrRunNotFound, connect.CodeNotFound, "RUN_NOT_FOUND"},
		{ledger.ErrRunExists, connect.CodeAlreadyExists, "RUN_EXISTS"},
		{admission.ErrInvalid, connect.CodeInvalidArgument, "INVALID_ARGUMENT"},
		{errPageToken, connect.CodeInvalidArgument, "PAGE_TOKEN_INVALID"},
		{journal.ErrCompacted, connect.CodeOutOfRange, "WATCH_COMPACTED"},
		{ledger.ErrNodeUnknown, connect.CodeNotFound, "NODE_UNKNOWN"},
		{ledger.ErrNodeName, connect.CodeAlreadyExists, "NODE_EXISTS"},
		{ledger.ErrPredecessor, connect.CodeInvalidArgument, "NODE_INVALID"},
		{ledger.ErrReport, connect.CodeInvalidArgument, "REPORT_INVALID"},
		{nodes.ErrFenced, connect.CodeFailedPrecondition, "NODE_FENCED"},
		{lifecycle.ErrFenced, connect.CodeFailedPrecondition, "NODE_FENCED"},
		{lifecycle.ErrRefused, connect.CodeFailedPrecondition, "NODE_FENCED"},
		{errArchiveMissing, connect.CodeFailedPrecondition, "ARCHIVE_NOT_FOUND"},
		{archive.ErrNotFound, connect.CodeNotFound, "ARCHIVE_NOT_FOUND"},
		{archive.ErrTooLarge, connect.CodeInvalidArgument, "ARCHIVE_TOO_LARGE"},
		{archive.ErrSum, connect.CodeInvalidArgument, "ARCHIVE_INVALID"},
		{archive.ErrInvalid, connect.CodeInvalidArgument, "ARCHIVE_INVALID"},
		{ledger.ErrStoreFailed, connect.CodeUnavailable, "STORE_UNAVAILABLE"},
		{ledger.ErrStopped, connect.CodeUnavailable, "SHUTTING_DOWN"},
	}
	if len(rows) != len(table) {
		t.Errorf("the table has %d rows, this test %d", len(table), len(rows))
	}
	for _, row := range rows {
		err := table.Error(fmt.Errorf("do it: %w", row.err), map[string]string{edge.RunUID: "u"})
		info := edge.Info(err)
		if connect.CodeOf(err) != row.code || info.GetReason() != row.reason || info.GetMetadata()[edge.RunUID] != "u" || info.GetDomain() != edge.Domain {
			t.Errorf("%v: %v %v", row.err, connect.CodeOf(err), info)
		}
	}
}
