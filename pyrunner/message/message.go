// Package message owns what is said over a frame stream between Go and the Python
// package: a kind, then fields, each a 4-byte big-endian length and its bytes.
// Numbers are 8-byte big-endian. The Python counterpart is message.py; golden
// vectors hold the two together.
package message

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind says what a message is and which fields it has, in order.
type Kind byte

// Go to a template process.
const (
	// Load does the imports: mode, then the mode's own fields. Mode "function":
	// run_uid, working folder, module, function; mode "imports": the name of a module.
	// Answer: Loaded or Refused.
	Load Kind = 1
	// Fork makes a child that answers over the descriptor passed along. Answer:
	// Forked; the child itself says Ready on its descriptor.
	Fork Kind = 2
	// Reap waits for a child that has ended or was killed, and ends everything
	// that it left behind: pid. Answer: Reaped.
	Reap Kind = 3
	// Serve turns a process that cannot fork into the child itself. Answer:
	// Ready on the descriptor passed along.
	Serve Kind = 4
	// Grow makes a template process that begins with the imports of this one and is
	// asked over the first descriptor passed along: kin (GrowChild or GrowSibling),
	// working folder ("" leaves it), then one field for each NAME=VALUE of its whole
	// environment. A second and a third descriptor become its 1 and 2. Answer:
	// Forked.
	Grow Kind = 5
	// Enter makes a sibling of the template that is the first process of a pid
	// namespace and enters a container, as package process of the sandbox says (Entry):
	// address of the steps and their length, code, its entry, number of the descriptor
	// over which it is told Begin, limit of an
	// executor's output. With it come the entry's files. Answer: Forked, or Refused with RefusedFork. Only the entry
	// "zygote" of the package knows it.
	Enter Kind = 6
	// List asks for what is loaded. Answer: Listed.
	List Kind = 7
)

// First field of Grow: whose child the new template is.
const (
	// GrowChild is the template's own: it leads a session, dies with the template and
	// is reaped by Reap.
	GrowChild = 0
	// GrowSibling is a child of the process that started the template: it is reaped
	// there, dies with the thread that started the template, and lives on without it.
	// It leaves the template's process group for a session of its own with the first
	// message that it is told: one whose Forked got lost ends, or is ended, with that
	// group.
	GrowSibling = 1
)

// A template process to Go.
const (
	// Loaded: number of threads alive (1 is what can fork), number of processes
	// that the import left and that were ended, microseconds that the mode took, then
	// one field for each open descriptor of the import's own ("5 socket:[123]").
	Loaded Kind = 17
	// Refused: RefusedHandler or RefusedLoad, a text for the function's author.
	Refused Kind = 18
	// Forked: pid.
	Forked Kind = 19
	// Reaped: pid, wait status, number of processes that were ended.
	Reaped Kind = 20
	// Listed: the names of the top-level modules that are loaded, sorted, one a field.
	Listed Kind = 21
)

// Go to an instance of mode "function".
const (
	// Call: sequence, invocation_id, milliseconds left, payload.
	Call Kind = 33
)

// An instance of mode "function" to Go.
const (
	// Ready: pid.
	Ready Kind = 49
	// Answer: sequence, payload, then key and value of each output.
	Answer Kind = 50
	// Failure: sequence, code (below), type, message, trace, exit code.
	Failure Kind = 51
	// Entry is a log entry: sequence, level (debug, info, warn, error), text.
	Entry Kind = 52
)

// An executor to the worker, on its control socket. It also says Ready, once.
const (
	// Log is a piece of what the running call prints, valid UTF-8: text.
	Log Kind = 65
	// Executed: every Log of the call was sent, its answer follows on the call's
	// own connection.
	Executed Kind = 66
	// NeedPackages: requirements of the running call, one a field. Answer: UsePaths
	// or PackagesFailed.
	NeedPackages Kind = 67
)

// The worker to an executor, on its control socket.
const (
	// UsePaths: folders that imports shall look into first. What was sent before a
	// call was dialled counts for that call.
	UsePaths Kind = 81
	// PackagesFailed: why.
	PackagesFailed Kind = 82
	// Begin is told to a process that has entered a container, without a frame, over a
	// pipe of its own that ends with it: one field for each NAME=VALUE of its whole
	// environment. A pipe that ends without it ends the process.
	Begin Kind = 83
)

// First field of Refused.
const (
	RefusedHandler = "HANDLER_INVALID"
	RefusedLoad    = "LOAD_FAILED"
	RefusedFork    = "FORK_FAILED"
)

// Second field of Failure.
const (
	FailedHandler        = "HANDLER_ERROR"
	FailedPayload        = "PAYLOAD_INVALID"
	FailedResponse       = "RESPONSE_TOO_LARGE"
	FailedOutputs        = "OUTPUTS_INVALID"
	FailedOutputsTooMuch = "OUTPUTS_TOO_LARGE"
)

// ErrMalformed is a message whose lengths do not add up or that lacks fields.
var ErrMalformed = errors.New("message is malformed")

// Message is one message.
type Message struct {
	Kind   Kind
	Fields [][]byte
}

// Append appends a message of kind with fields to dst. A field is a string, a
// []byte, an int, an int64 or a uint64.
func Append(dst []byte, kind Kind, fields ...any) []byte {
	dst = append(dst, byte(kind))
	for _, field := range fields {
		switch f := field.(type) {
		case string:
			dst = binary.BigEndian.AppendUint32(dst, uint32(len(f)))
			dst = append(dst, f...)
		case []byte:
			dst = binary.BigEndian.AppendUint32(dst, uint32(len(f)))
			dst = append(dst, f...)
		case int:
			dst = appendNumber(dst, int64(f))
		case int64:
			dst = appendNumber(dst, f)
		case uint64:
			dst = appendNumber(dst, int64(f))
		default:
			panic(fmt.Sprintf("message: field of type %T", field))
		}
	}
	return dst
}

func appendNumber(dst []byte, n int64) []byte {
	dst = binary.BigEndian.AppendUint32(dst, 8)
	return binary.BigEndian.AppendUint64(dst, uint64(n))
}

// Parse takes a message apart; the fields share raw's memory.
// Errors: ErrMalformed.
func Parse(raw []byte) (Message, error) {
	if len(raw) == 0 {
		return Message{}, fmt.Errorf("%w: empty", ErrMalformed)
	}
	m := Message{Kind: Kind(raw[0])}
	for rest := raw[1:]; len(rest) > 0; {
		if len(rest) < 4 {
			return Message{}, fmt.Errorf("%w: %d bytes after the last field", ErrMalformed, len(rest))
		}
		n := binary.BigEndian.Uint32(rest)
		rest = rest[4:]
		if uint64(n) > uint64(len(rest)) {
			return Message{}, fmt.Errorf("%w: a field of %d bytes, %d are there", ErrMalformed, n, len(rest))
		}
		m.Fields = append(m.Fields, rest[:n:n])
		rest = rest[n:]
	}
	return m, nil
}

// Bytes returns field i, nil if there is none.
func (m Message) Bytes(i int) []byte {
	if i >= len(m.Fields) {
		return nil
	}
	return m.Fields[i]
}

// Text returns field i, "" if there is none.
func (m Message) Text(i int) string { return string(m.Bytes(i)) }

// Number returns field i.
// Errors: ErrMalformed if it is no number.
func (m Message) Number(i int) (int64, error) {
	b := m.Bytes(i)
	if len(b) != 8 {
		return 0, fmt.Errorf("%w: field %d of kind %d is no number", ErrMalformed, i, m.Kind)
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}
