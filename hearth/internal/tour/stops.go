// Package tour owns what `hearth demo` shows: the example functions, what each is
// called with, and which answer is right.
package tour

import (
	"bytes"
	"fmt"
	"strings"
)

// Stop is one example.
type Stop struct {
	Name, Runtime, Handler string
	// Folder is the source, beneath the examples.
	Folder string
	// Shows says in one line why it is here.
	Shows string
	// Warm says that the second call is to be held against the start.
	Warm  bool
	Calls []Call
}

// Call is one call of it and what has to come back.
type Call struct {
	Payload string
	Status  int
	// Right says what is wrong with an answer, nil if nothing is.
	Right func(body []byte) error
}

// Stops are the examples in the order of the tour.
func Stops() []Stop {
	twice := func(payload string, right func([]byte) error) []Call {
		return []Call{{payload, 200, right}, {payload, 200, right}}
	}
	return []Stop{
		{
			Name: "hello", Runtime: "python", Handler: "app.hello", Folder: "python/hello",
			Shows: "a Python function that answers JSON", Warm: true,
			Calls: twice(`{"name":"Ada"}`, is(`{"greeting":"Hello, Ada!"}`)),
		},
		{
			Name: "table", Runtime: "bash", Handler: "table.lookup", Folder: "bash/table",
			Shows: "a Bash function that makes a table once, at its start", Warm: true,
			Calls: twice(`{"n":1999}`, is("{\"n\":1999,\"prime\":true}\n")),
		},
		{
			Name: "hello-bash", Runtime: "bash", Handler: "hello.greet", Folder: "bash/hello",
			Shows: "a Bash function: the payload is $1, the answer is its output",
			Calls: twice(`{"name":"$(touch pwned)"}`, is("Hello from Bash! You sent: {\"name\":\"$(touch pwned)\"}\n")),
		},
		{
			Name: "cache", Runtime: "python", Handler: "app.lookup", Folder: "python/cache",
			Shows: "module state that stays warm: the second call finds what the first has made", Warm: true,
			Calls: []Call{{`{"n":12}`, 200, has(`"square":144`, `"cached":false`)}, {`{"n":12}`, 200, has(`"square":144`, `"cached":true`)}},
		},
		{
			Name: "stats", Runtime: "python", Handler: "app.describe", Folder: "python/stats",
			Shows: "numpy, where the interpreter has it",
			Calls: twice(`{"values":[1,2,3]}`, has(`"count":3`)),
		},
		{
			Name: "sum", Runtime: "bash", Handler: "sum.add", Folder: "bash/sum",
			Shows: "JSON in Bash, with jq where it is installed",
			Calls: twice(`{"values":[1,2,3]}`, has(`"sum":6`)),
		},
		{
			Name: "bytes", Runtime: "bash", Handler: "bytes.emit", Folder: "bash/bytes",
			Shows: "an answer that is no text, byte for byte",
			Calls: twice("", is("\x89PNG\r\n\x1a\n")),
		},
		{
			Name: "fail", Runtime: "python", Handler: "app.divide", Folder: "python/fail",
			Shows: "an exception: 502 with its type and traceback, and the next call works",
			Calls: []Call{{`{"a":1,"b":0}`, 502, has("HANDLER_ERROR", "ZeroDivisionError", "Traceback")}, {`{"a":1,"b":4}`, 200, has(`"quotient":0.25`)}},
		},
		{
			Name: "exit3", Runtime: "bash", Handler: "exit3.run", Folder: "bash/exit3",
			Shows: "an exit status: 502 with the status and the end of standard error",
			Calls: []Call{{"{}", 502, has("HANDLER_ERROR", `"exit_code":"3"`, "the disk is on fire")}},
		},
	}
}

// is wants exactly this body, but for the spaces that JSON may have.
func is(want string) func([]byte) error {
	return func(body []byte) error {
		if got := squeeze(body); got != squeeze([]byte(want)) {
			return fmt.Errorf("want %q", want)
		}
		return nil
	}
}

// has wants each of these in the body.
func has(parts ...string) func([]byte) error {
	return func(body []byte) error {
		got := squeeze(body)
		for _, part := range parts {
			if !strings.Contains(got, squeeze([]byte(part))) {
				return fmt.Errorf("want %q in it", part)
			}
		}
		return nil
	}
}

// squeeze leaves out spaces, which JSON encoders put where they like.
func squeeze(body []byte) string { return string(bytes.ReplaceAll(body, []byte(" "), nil)) }
