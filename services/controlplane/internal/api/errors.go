package api

import (
	"errors"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/services/controlplane/internal/admission"
	"github.com/hearth-run/hearth/services/controlplane/internal/archive"
	"github.com/hearth-run/hearth/services/controlplane/internal/journal"
	"github.com/hearth-run/hearth/services/controlplane/internal/ledger"
	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/nodes"
)

// errPageToken: the token is not one of ours, or belongs to another filter.
var errPageToken = errors.New("api: page token")

// errArchiveMissing: a new Run names an archive that is not here.
var errArchiveMissing = errors.New("api: the archive is missing")

// table is the control plane's edge, and read only.
var table = edge.Table{
	{Err: ledger.ErrRunNotFound, Code: connect.CodeNotFound, Reason: "RUN_NOT_FOUND", Text: "there is no such Run"},
	{Err: ledger.ErrRunExists, Code: connect.CodeAlreadyExists, Reason: "RUN_EXISTS", Text: "a Run of this name exists in the namespace; delete it first or take another name"},
	{Err: admission.ErrInvalid, Code: connect.CodeInvalidArgument, Reason: "INVALID_ARGUMENT", Text: "the request cannot be accepted"},
	{Err: errPageToken, Code: connect.CodeInvalidArgument, Reason: "PAGE_TOKEN_INVALID", Text: "page_token is not from an answer to this filter; begin again without one"},
	{Err: journal.ErrCompacted, Code: connect.CodeOutOfRange, Reason: "WATCH_COMPACTED", Text: "the history no longer has what followed this resource_version; list again and watch from there"},
	{Err: ledger.ErrNodeUnknown, Code: connect.CodeNotFound, Reason: "NODE_UNKNOWN", Text: "there is no such node; register again with a new uid"},
	{Err: ledger.ErrNodeName, Code: connect.CodeAlreadyExists, Reason: "NODE_EXISTS", Text: "this uid belongs to a node of another name; register with a new uid"},
	{Err: ledger.ErrPredecessor, Code: connect.CodeInvalidArgument, Reason: "NODE_INVALID", Text: "predecessor_uid belongs to a node of another name"},
	{Err: ledger.ErrReport, Code: connect.CodeInvalidArgument, Reason: "REPORT_INVALID", Text: "only functions are ready, and only tasks are finished"},
	{Err: nodes.ErrFenced, Code: connect.CodeFailedPrecondition, Reason: "NODE_FENCED", Text: "the node's lease was lost; stop serving and register again with a new uid"},
	{Err: lifecycle.ErrFenced, Code: connect.CodeFailedPrecondition, Reason: "NODE_FENCED", Text: "the Run is assigned to another node or attempt"},
	{Err: lifecycle.ErrRefused, Code: connect.CodeFailedPrecondition, Reason: "NODE_FENCED", Text: "the attempt is over"},
	{Err: errArchiveMissing, Code: connect.CodeFailedPrecondition, Reason: "ARCHIVE_NOT_FOUND", Text: "spec.source.archive names an archive that is not here; upload it with UploadArchive first"},
	{Err: archive.ErrNotFound, Code: connect.CodeNotFound, Reason: "ARCHIVE_NOT_FOUND", Text: "there is no such archive"},
	{Err: archive.ErrTooLarge, Code: connect.CodeInvalidArgument, Reason: "ARCHIVE_TOO_LARGE", Text: "an archive has at most 64 MiB; leave out what can be built or fetched, or use git"},
	{Err: archive.ErrSum, Code: connect.CodeInvalidArgument, Reason: "ARCHIVE_INVALID", Text: "the archive does not have the sha256 that was announced; upload it again"},
	{Err: archive.ErrInvalid, Code: connect.CodeInvalidArgument, Reason: "ARCHIVE_INVALID", Text: "the archive is no gzip; make it with tar czf"},
	{Err: ledger.ErrStoreFailed, Code: connect.CodeUnavailable, Reason: "STORE_UNAVAILABLE", Text: "the control plane cannot write its store; the change was not made"},
	{Err: ledger.ErrStopped, Code: connect.CodeUnavailable, Reason: "SHUTTING_DOWN", Text: "the control plane is shutting down"},
}
