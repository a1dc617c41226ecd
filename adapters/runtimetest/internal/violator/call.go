package violator

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

// instance is what a loaded function keeps between calls; one call at a time
// works on it.
type instance struct {
	name    string // of the function in the fake's language
	called  int
	printed string // output that belongs to nobody
	outputs map[string]string
}

// call is one invocation of a fake function.
type call struct {
	g           *registration
	id          string
	input       []byte
	contentType string
	outputs     map[string]string
}

// failure is the handler's own.
type failure struct{ kind, text, exit string }

func (f *failure) Error() string { return f.text }

// bad is an answer or a payload that the contract does not take.
type bad struct {
	code         connect.Code
	reason, text string
}

func (b *bad) Error() string { return b.text }

func invalidInput(text string) error {
	return &bad{connect.CodeInvalidArgument, "INVALID_ARGUMENT", "input: " + text}
}

// run runs the handler and judges its payload before and its answer after.
func (r *Runtime) run(ctx context.Context, c *call, req *executorv1.InvokeFunctionRequest) ([]byte, error) {
	if r.is("deduplicates") && req.GetInvocationId() != "" {
		r.mu.Lock()
		answer := r.known[c.id]
		r.known[c.id] = c.input
		r.mu.Unlock()
		if answer != nil {
			return answer, nil
		}
	}
	if err := r.payload(c); err != nil {
		return nil, err
	}
	do := behaviours()[c.g.instance.name]
	if do == nil {
		return nil, &failure{kind: "Missing", text: "no such behaviour"}
	}
	output, err := do(ctx, c)
	if err != nil {
		return nil, err
	}
	return r.judge(c, output)
}

// oddities are payloads that break weak servers.
func oddities() map[string]func([]byte) bool {
	return map[string]func([]byte) bool{
		"empty":     func(b []byte) bool { return len(b) == 0 },
		"utf8":      func(b []byte) bool { return !utf8.Valid(b) },
		"nul":       func(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 },
		"depth":     func(b []byte) bool { return bytes.HasPrefix(b, []byte("[[[[[[[[")) },
		"twice":     func(b []byte) bool { return string(b) == `{"a":1,"a":2}` },
		"surrogate": func(b []byte) bool { return bytes.Contains(b, []byte(`\ud800`)) },
		"numbers":   func(b []byte) bool { return bytes.Contains(b, []byte("e999999")) },
	}
}

func (r *Runtime) payload(c *call) error {
	for name, odd := range oddities() {
		if r.is("breaks-on-"+name) && odd(c.input) {
			return &bad{connect.CodeInternal, "INTERNAL", "broken"}
		}
	}
	if r.is("breaks-on-type") && c.contentType == "application/x-unknown" {
		return &bad{connect.CodeInternal, "INTERNAL", "broken"}
	}
	if r.is("evaluates-payload") && bytes.Contains(c.input, []byte("touch pwned")) {
		c.touch("pwned")
	}
	if !json.Valid(c.input) && !r.is("takes-no-json") {
		return invalidInput("not JSON")
	}
	if r.is("trims-payload") {
		c.input = bytes.ReplaceAll(c.input, []byte(" "), nil)
	}
	if r.is("cuts-input") && len(c.input) > 128<<10 {
		c.input = c.input[:128<<10]
	}
	return nil
}

// judge holds an answer to its bounds.
func (r *Runtime) judge(c *call, output []byte) ([]byte, error) {
	limit := 1 << 20
	if r.is("refuses-full-output") {
		limit--
	}
	if r.is("takes-any-output") || r.is("takes-longer-input") || r.is("reads-any-message") {
		limit = 64 << 20
	}
	if len(output) > limit {
		return nil, &bad{connect.CodeResourceExhausted, "RESPONSE_TOO_LARGE", "output: more than 1 MiB"}
	}
	if err := r.judgeOutputs(c.outputs); err != nil {
		return nil, err
	}
	inst := &c.g.instance
	if r.is("outputs-stay") {
		for k, v := range inst.outputs {
			c.outputs[k] = v
		}
		inst.outputs = c.outputs
	}
	if r.is("prints-into-answer") || r.is("late-output-leaks") || r.is("load-prints-into-answer") {
		output = append(output, inst.printed...)
		inst.printed = ""
		if r.is("late-output-leaks") && inst.name == "late" {
			inst.printed = "LATE" + string(c.input)
		}
	}
	if r.is("strips-line-end") {
		output = bytes.TrimRight(output, "\n")
	}
	return output, nil
}

// judgeOutputs checks each bound; a switch makes it short by one or ignores it.
func (r *Runtime) judgeOutputs(outputs map[string]string) error {
	count, key, value, total, shortest := len(outputs), 0, 0, 0, 1
	for k, v := range outputs {
		key, value, shortest = max(key, len(k)), max(value, len(v)), min(shortest, len(k))
		total += len(k) + len(v)
	}
	for _, bound := range []struct {
		name      string
		is, limit int
	}{{"count", count, 64}, {"key", key, 128}, {"value", value, 8 << 10}, {"total", total, 64 << 10}} {
		if r.is("outputs-" + bound.name + "-short") {
			bound.limit--
		}
		if bound.is > bound.limit && !r.is("outputs-"+bound.name+"-unbounded") {
			return &bad{connect.CodeResourceExhausted, "OUTPUTS_TOO_LARGE", "outputs: " + bound.name + " over its bound"}
		}
	}
	if shortest == 0 && !r.is("outputs-empty-key") {
		return &bad{connect.CodeInternal, "OUTPUTS_INVALID", "outputs: an empty key"}
	}
	return nil
}

func (r *Runtime) contentType(output []byte) string {
	switch {
	case r.is("everything-is-octets"):
		return "application/octet-stream"
	case r.is("everything-is-text"):
		return "text/plain; charset=utf-8"
	case json.Valid(output):
		return "application/json"
	case utf8.Valid(output):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

func (c *call) text() string { return strings.Trim(string(c.input), `"`) }

func (c *call) touch(file string) { touch(c.g.dir, file, "") }

// touch appends to a file, as a fixture would; a test that misses it says so.
func touch(dir, file, line string) {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(line)
}

// waitFor waits for a file, as a fixture does: by looking.
func waitFor(ctx context.Context, dir, file string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		// The end comes first: what is over does not find the file, however late it
		// looks.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
