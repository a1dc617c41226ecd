package python

import (
	"context"
	"fmt"
	"mime"
	"strings"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/pyrunner/message"
)

// verdict is what an instance said of a call: an answer, or a failure that leaves
// the instance as it is.
type verdict struct {
	result runtimeserver.Result
	err    error
}

// exchange runs one call on a child. An error means that the child is lost, and
// with it what it may have said.
func (i *Instance) exchange(ctx context.Context, c *child, call runtimeserver.Call) (verdict, error) {
	stop := c.conn.Bound(ctx)
	v, err := i.converse(c, call)
	if !stop() {
		return verdict{}, context.Cause(ctx)
	}
	return v, err
}

func (i *Instance) converse(c *child, call runtimeserver.Call) (verdict, error) {
	i.sequence++
	left := max(0, time.Until(call.Deadline).Milliseconds())
	if err := c.conn.Send(message.Call, i.sequence, call.InvocationID, left, call.Input); err != nil {
		return verdict{}, err
	}
	for {
		m, err := c.conn.Receive()
		if err != nil {
			return verdict{}, err
		}
		sequence, err := m.Number(0)
		if err != nil {
			return verdict{}, err
		}
		mine := sequence == i.sequence
		switch {
		case m.Kind == message.Entry && mine:
			i.function.Logs.Entry(call.InvocationID, m.Text(1), m.Text(2))
		case m.Kind == message.Entry:
			i.function.Logs.Entry("", m.Text(1), m.Text(2)) // of a thread that outlived its call
		case m.Kind == message.Answer && mine:
			return verdict{result: answer(m)}, nil
		case m.Kind == message.Failure && mine:
			return failed(m)
		default:
			return verdict{}, fmt.Errorf("%w: kind %d of call %d", message.ErrMalformed, m.Kind, sequence)
		}
	}
}

func answer(m message.Message) runtimeserver.Result {
	result := runtimeserver.Result{Output: m.Bytes(1), ContentType: "application/json"}
	for i := 2; i+1 < len(m.Fields); i += 2 {
		if result.Outputs == nil {
			result.Outputs = map[string]string{}
		}
		result.Outputs[m.Text(i)] = m.Text(i + 1)
	}
	return result
}

func failed(m message.Message) (verdict, error) {
	err := failure(m)
	if malformed(err) {
		return verdict{}, err
	}
	return verdict{err: err}, nil
}

// checkContentType refuses what is not JSON in UTF-8. Empty is JSON.
// Errors: ErrPayload with a text for the caller.
func checkContentType(contentType string) error {
	if contentType == "" || contentType == "application/json" {
		return nil
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || (kind != "application/json" && !strings.HasSuffix(kind, "+json")) {
		return edge.Publicf(runtimeserver.ErrPayload, "content type %q: a Python function takes application/json", contentType)
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return edge.Publicf(runtimeserver.ErrPayload, "content type %q: send UTF-8", contentType)
	}
	return nil
}
