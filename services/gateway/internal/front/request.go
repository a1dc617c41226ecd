package front

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
	"github.com/hearth-run/hearth/services/gateway/internal/invoke"
)

// Bounds, in bytes unless said otherwise.
const (
	maxPayload      = 1 << 20
	maxID           = 128
	maxContentType  = 256
	maxTraceparent  = 256
	maxLabel        = 63
	bodyTime        = 30 * time.Second
	firstBuffer     = 64 << 10
	jsonType        = "application/json"
	formType        = "application/x-www-form-urlencoded"
	envelopeType    = "application/vnd.hearth.invocation+json"
	octetStreamType = "application/octet-stream"
)

// read checks the path and the headers; the body is left alone.
func read(r *http.Request, call invoke.Call) (invoke.Call, error) {
	call.InvocationID = r.Header.Get(HeaderInvocationID)
	call.ContentType = contentType(r.Header.Get("Content-Type"))
	if trace := r.Header.Get(hop.Traceparent); len(trace) <= maxTraceparent {
		call.Traceparent = trace
	}
	var err error
	if call.Timeout, err = timeout(r.Header.Get(HeaderTimeout)); err != nil {
		return call, err
	}
	switch {
	case !label(call.Namespace):
		return call, invalid("namespace %q: want a DNS-1123 label: a-z, 0-9 and -, at most %d bytes", call.Namespace, maxLabel)
	case !label(call.Name):
		return call, invalid("run name %q: want a DNS-1123 label: a-z, 0-9 and -, at most %d bytes", call.Name, maxLabel)
	case len(call.RunUID) > maxID:
		return call, invalid("run uid of %d bytes: want at most %d", len(call.RunUID), maxID)
	case len(call.InvocationID) > maxID:
		return call, invalid("header %s of %d bytes: want at most %d; leave it out to have one made up", HeaderInvocationID, len(call.InvocationID), maxID)
	case !printable(call.InvocationID):
		return call, invalid("header %s: want printable ASCII; leave it out to have one made up", HeaderInvocationID)
	case len(call.ContentType) > maxContentType || !printable(call.ContentType):
		return call, invalid("header Content-Type: want at most %d bytes of printable ASCII", maxContentType)
	}
	return call, nil
}

// payload reads the body up to its bound: what is longer is refused without
// being read to its end. A caller that stops sending is cut off.
func payload(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	switch {
	case r.ContentLength == 0:
		return nil, nil
	case r.ContentLength > maxPayload:
		return nil, tooLarge(strconv.FormatInt(r.ContentLength, 10) + " bytes")
	}
	// Recorders in tests have no connection to set a deadline on.
	limits := http.NewResponseController(w)
	if err := limits.SetReadDeadline(time.Now().Add(bodyTime)); err == nil {
		// A deadline that was left would end the whole call when it passed.
		defer func() { _ = limits.SetReadDeadline(time.Time{}) }()
	}
	data, err := slurp(r.Body, r.ContentLength)
	if err != nil {
		return nil, edge.New(connect.CodeInvalidArgument, "INVALID_ARGUMENT", "the body ended before it was complete, or did not come within "+bodyTime.String(), nil)
	}
	if len(data) > maxPayload {
		return nil, tooLarge("more than its bound")
	}
	return data, nil
}

// slurp reads at most one byte more than the bound. length is -1 if not known;
// memory is taken as bytes come, not as they were promised.
func slurp(body io.Reader, length int64) ([]byte, error) {
	if length >= 0 && length <= firstBuffer {
		data := make([]byte, length)
		_, err := io.ReadFull(body, data)
		return data, err
	}
	data := make([]byte, 0, firstBuffer)
	for len(data) <= maxPayload {
		if len(data) == cap(data) {
			grown := make([]byte, len(data), min(4*cap(data), maxPayload+1))
			copy(grown, data)
			data = grown
		}
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return data, nil
}

// contentType is what the function sees. A caller that says nothing, or for whom
// curl's -d has spoken, means JSON.
func contentType(header string) string {
	if header == "" || strings.HasPrefix(header, formType) {
		return jsonType
	}
	return header
}

// timeout reads the header; its upper bound is the invoker's.
func timeout(header string) (time.Duration, error) {
	if header == "" {
		return 0, nil
	}
	ms, err := strconv.ParseInt(header, 10, 64)
	if err != nil || ms < 0 || ms > int64(365*24*time.Hour/time.Millisecond) {
		return 0, invalid("header %s is %q: want a whole number of milliseconds, 0 (the default, 30000) to 900000", HeaderTimeout, header)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// label says whether s is a DNS-1123 label.
func label(s string) bool {
	if s == "" || len(s) > maxLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

func invalid(format string, args ...any) error {
	return edge.New(connect.CodeInvalidArgument, "INVALID_ARGUMENT", fmt.Sprintf(format, args...), nil)
}

func tooLarge(size string) error {
	return edge.New(connect.CodeInvalidArgument, "INVALID_ARGUMENT",
		fmt.Sprintf("the body has %s: want at most %d bytes (1 MiB); pass a reference to larger data", size, maxPayload), nil)
}
