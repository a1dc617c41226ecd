// Package front owns how invocations come in over plain HTTP and how their
// answers go out: shapes, bounds, headers, statuses.
package front

import (
	"net/http"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

// statusClientGone is what the log of a proxy in front shows where the caller
// did not wait.
const statusClientGone = 499

// byReason are the reasons whose status is not the one of their code: there the
// function is at fault, and the caller sees a gateway's view of it.
var byReason = map[string]int{
	"HANDLER_ERROR":      http.StatusBadGateway,
	"RESPONSE_TOO_LARGE": http.StatusBadGateway,
	"OUTPUTS_TOO_LARGE":  http.StatusBadGateway,
	"OUTPUTS_INVALID":    http.StatusBadGateway,
}

var byCode = map[connect.Code]int{
	connect.CodeInvalidArgument:    http.StatusBadRequest,
	connect.CodeUnauthenticated:    http.StatusUnauthorized,
	connect.CodePermissionDenied:   http.StatusForbidden,
	connect.CodeNotFound:           http.StatusNotFound,
	connect.CodeResourceExhausted:  http.StatusTooManyRequests,
	connect.CodeCanceled:           statusClientGone,
	connect.CodeUnimplemented:      http.StatusNotImplemented,
	connect.CodeFailedPrecondition: http.StatusServiceUnavailable,
	connect.CodeUnavailable:        http.StatusServiceUnavailable,
	connect.CodeDeadlineExceeded:   http.StatusGatewayTimeout,
}

// Status is the HTTP status of an error with this code and reason.
func Status(code connect.Code, reason string) int {
	if status, ok := byReason[reason]; ok {
		return status
	}
	if status, ok := byCode[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// RetryAfter is the value of Retry-After for a status, in seconds, "" where the
// same call would fare the same.
func RetryAfter(status int) string {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		return "1"
	}
	return ""
}

// fault writes err as Connect's error JSON under our own status.
func (h *Handler) fault(w http.ResponseWriter, err error) {
	err = edge.Table(nil).Error(err, nil)
	h.faultWith(w, err, Status(connect.CodeOf(err), edge.Reason(err)))
}

func (h *Handler) faultWith(w http.ResponseWriter, err error, status int) {
	if retry := RetryAfter(status); retry != "" {
		w.Header().Set("Retry-After", retry)
	}
	if info := edge.Info(err); info != nil {
		setKnown(w.Header(), HeaderInvocationID, info.GetMetadata()[edge.InvocationID])
		setKnown(w.Header(), HeaderRunUID, info.GetMetadata()[edge.RunUID])
	}
	// The writer looks at the request to find out the protocol; a plain caller has
	// none, whatever the content type of its payload is.
	if err := h.errors.Write(statusWriter{w, status}, &http.Request{Header: http.Header{}}, err); err != nil {
		h.log.Debug("answer not written", "cause", err)
	}
}

func setKnown(h http.Header, key, value string) {
	if value != "" && !strings.ContainsAny(value, "\r\n") {
		h.Set(key, value)
	}
}

// statusWriter replaces the status that Connect would give the code.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w statusWriter) WriteHeader(int) { w.ResponseWriter.WriteHeader(w.status) }
