// Package edge owns how errors cross the wire: domain errors become a code, a
// reason, a text that somebody wrote for the reader, and one google.rpc.ErrorInfo
// of the domain "hearth". Clients branch on reasons, so they are part of the
// contract.
package edge

import (
	"context"
	"errors"
	"maps"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
)

// Domain is the domain of every ErrorInfo that Hearth writes.
const Domain = "hearth"

// Keys of ErrorInfo metadata, the same in every service.
const (
	RunUID       = "run_uid"
	InvocationID = "invocation_id"
)

// Row says what one domain error is on the wire.
type Row struct {
	// Err is matched with errors.Is.
	Err error
	// Code and Reason are what clients branch on.
	Code   connect.Code
	Reason string
	// Text is the fixed text. A Public text inside the error takes its place.
	Text string
}

// Table is a service's edge: the first row that matches counts.
type Table []Row

// Domain errors may carry more for the reader than their row says.
type (
	// public is an error whose text was written for the caller.
	public interface {
		error
		Public() string
	}
	// debugger is an error with a traceback or the tail of an output, which goes
	// into google.rpc.DebugInfo.
	debugger interface {
		error
		Debug() string
	}
	// metadata is an error with facts for ErrorInfo's metadata.
	metadata interface {
		error
		Metadata() map[string]string
	}
)

// Error translates err for the wire; nil stays nil. meta is added to the
// metadata of ErrorInfo, empty values left out. An error that was authored with
// a code here already keeps it; an error that came from a peer and anything
// unknown become Internal, with the original as the local cause only.
func (t Table) Error(err error, meta map[string]string) error {
	if err == nil {
		return nil
	}
	facts := maps.Clone(meta)
	if m, ok := errors.AsType[metadata](err); ok {
		if facts == nil {
			facts = map[string]string{}
		}
		maps.Copy(facts, m.Metadata())
	}
	for _, row := range t {
		if errors.Is(err, row.Err) {
			return build(row, err, facts)
		}
	}
	if authored, ok := errors.AsType[*connect.Error](err); ok && !authored.IsRemote() {
		return Stamp(authored)
	}
	return build(fallback(err), err, facts)
}

func fallback(err error) Row {
	switch {
	case errors.Is(err, context.Canceled):
		return Row{Code: connect.CodeCanceled, Reason: "CANCELED", Text: "the caller went away"}
	case errors.Is(err, context.DeadlineExceeded):
		return Row{Code: connect.CodeDeadlineExceeded, Reason: "DEADLINE_EXCEEDED", Text: "the deadline passed"}
	default:
		return Row{Code: connect.CodeInternal, Reason: "INTERNAL", Text: "internal error"}
	}
}

func build(row Row, err error, meta map[string]string) error {
	text := row.Text
	if p, ok := errors.AsType[public](err); ok {
		text = p.Public()
	}
	out := connect.NewError(row.Code, text).WithCause(err)
	out = out.WithDetail(detail(info(row.Reason, meta)))
	if d, ok := errors.AsType[debugger](err); ok && d.Debug() != "" {
		out = out.WithDetail(detail(&errdetails.DebugInfo{Detail: d.Debug()}))
	}
	return out
}

// New authors an error in place, for what no table can know.
func New(code connect.Code, reason, text string, meta map[string]string) error {
	return connect.NewError(code, text).WithDetail(detail(info(reason, meta)))
}

// Restate authors anew, as this hop's own verdict, what a peer answered: the
// same code, text and details, and meta added to its ErrorInfo. It is for hops
// whose contract is to pass a verdict on; an error without a code is Internal.
func Restate(err error, meta map[string]string) error {
	var peer *connect.Error
	if !errors.As(err, &peer) {
		return Table(nil).Error(err, meta)
	}
	out := connect.NewError(peer.Code(), peer.Message()).WithCause(err)
	stated := Info(err)
	if stated == nil {
		stated = info(CodeReason(peer.Code()), nil)
	}
	out = out.WithDetail(detail(info(stated.GetReason(), merge(stated.GetMetadata(), meta))))
	for _, d := range peer.Details() {
		if d.Type != "google.rpc.ErrorInfo" {
			out = out.WithDetail(d)
		}
	}
	return out
}

// Stamp gives an authored error an ErrorInfo if it has none, with the reason
// that its code implies.
func Stamp(err *connect.Error) error {
	if Info(err) != nil {
		return err
	}
	return err.WithDetail(detail(info(CodeReason(err.Code()), nil)))
}

// Info returns the ErrorInfo of an error, local or remote, or nil.
func Info(err error) *errdetails.ErrorInfo {
	return find[*errdetails.ErrorInfo](err)
}

// Reason returns the reason of an error, local or remote, or "".
func Reason(err error) string {
	return Info(err).GetReason()
}

// DebugText returns the traceback or output tail of an error, or "".
func DebugText(err error) string {
	return find[*errdetails.DebugInfo](err).GetDetail()
}

func find[T proto.Message](err error) (none T) {
	var e *connect.Error
	if !errors.As(err, &e) {
		return none
	}
	for _, d := range e.Details() {
		msg, err := connectproto.UnmarshalErrorDetail(d)
		if err != nil {
			continue
		}
		if found, ok := msg.(T); ok {
			return found
		}
	}
	return none
}

func info(reason string, meta map[string]string) *errdetails.ErrorInfo {
	return &errdetails.ErrorInfo{Domain: Domain, Reason: reason, Metadata: merge(meta, nil)}
}

// merge copies both maps into one, without empty values.
func merge(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			if v != "" {
				out[k] = v
			}
		}
	}
	return out
}

// detail packs a message; packing one of ours cannot fail.
func detail(msg proto.Message) *connect.ErrorDetail {
	d, err := connectproto.NewErrorDetail(msg)
	if err != nil {
		return nil
	}
	return d
}

// CodeReason is the reason of an error that says only its code.
func CodeReason(code connect.Code) string {
	if reason, ok := codeReasons[code]; ok {
		return reason
	}
	return "UNKNOWN"
}

var codeReasons = map[connect.Code]string{
	connect.CodeCanceled:           "CANCELED",
	connect.CodeInvalidArgument:    "INVALID_ARGUMENT",
	connect.CodeDeadlineExceeded:   "DEADLINE_EXCEEDED",
	connect.CodeNotFound:           "NOT_FOUND",
	connect.CodeAlreadyExists:      "ALREADY_EXISTS",
	connect.CodePermissionDenied:   "PERMISSION_DENIED",
	connect.CodeResourceExhausted:  "RESOURCE_EXHAUSTED",
	connect.CodeFailedPrecondition: "FAILED_PRECONDITION",
	connect.CodeAborted:            "ABORTED",
	connect.CodeOutOfRange:         "OUT_OF_RANGE",
	connect.CodeUnimplemented:      "UNIMPLEMENTED",
	connect.CodeInternal:           "INTERNAL",
	connect.CodeUnavailable:        "UNAVAILABLE",
	connect.CodeDataLoss:           "DATA_LOSS",
	connect.CodeUnauthenticated:    "UNAUTHENTICATED",
}
