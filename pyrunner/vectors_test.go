package pyrunner_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/pyrunner/frame"
	"github.com/hearth-run/hearth/pyrunner/message"
)

var update = flag.Bool("update", false, "write the golden vectors anew")

// frameVector is a message and how it goes over the stream, or what is wrong with
// a stream. python/tests/test_vectors.py checks the same file.
type frameVector struct {
	Name    string `json:"name"`
	Chunk   int    `json:"chunk,omitempty"` // largest chunk in bytes
	Message string `json:"message"`         // hex
	Stream  string `json:"stream"`          // hex
	Limit   uint64 `json:"limit,omitempty"` // of a message, in bytes
	Error   string `json:"error,omitempty"` // truncated, chunk or message
}

var frameVectors = []frameVector{
	{Name: "hello world in chunks of 6", Chunk: 6, Message: hexOf("hello world"), Stream: "000000000000000668656c6c6f20" + "0000000000000005776f726c64" + "0000000000000000"},
	{Name: "empty message", Chunk: 6, Stream: "0000000000000000"},
	{Name: "one byte", Chunk: 6, Message: "00", Stream: "0000000000000001" + "00" + "0000000000000000"},
	{Name: "exactly one chunk", Chunk: 4, Message: hexOf("abcd"), Stream: "0000000000000004" + hexOf("abcd") + "0000000000000000"},
	{Name: "chunks of one byte", Chunk: 1, Message: hexOf("ab"), Stream: "000000000000000161" + "000000000000000162" + "0000000000000000"},
	{Name: "a terminator's bytes inside", Chunk: 16, Message: "0000000000000000", Stream: "0000000000000008" + "0000000000000000" + "0000000000000000"},
	{Name: "at the limit", Chunk: 2, Limit: 4, Message: hexOf("abcd"), Stream: "0000000000000002" + hexOf("ab") + "0000000000000002" + hexOf("cd") + "0000000000000000"},
	{Name: "over the limit in the second chunk", Limit: 3, Stream: "0000000000000002" + hexOf("ab") + "0000000000000002" + hexOf("cd"), Error: "message"},
	{Name: "over the limit at once", Limit: 3, Stream: "0000000000000004" + hexOf("abcd") + "0000000000000000", Error: "message"},
	{Name: "a chunk over its bound", Stream: "0000000004000001", Error: "chunk"},
	{Name: "the largest length", Stream: "ffffffffffffffff", Error: "chunk"},
	{Name: "end in a length", Stream: "000000", Error: "truncated"},
	{Name: "end in a chunk", Stream: "0000000000000005" + hexOf("ab"), Error: "truncated"},
	{Name: "end before the terminator", Stream: "0000000000000002" + hexOf("ab"), Error: "truncated"},
	{Name: "end in the terminator", Stream: "0000000000000002" + hexOf("ab") + "00000000", Error: "truncated"},
	{Name: "a claim of 64 MiB and nothing", Stream: "0000000004000000", Error: "truncated"},
}

// messageVector is a message, its parts, or that it is malformed.
type messageVector struct {
	Name   string       `json:"name"`
	Kind   message.Kind `json:"kind"`
	Fields []any        `json:"fields"` // hex texts and numbers
	Packed string       `json:"packed"` // hex
	Bad    bool         `json:"bad,omitempty"`
}

var messageVectors = []messageVector{
	{Name: "no field", Kind: message.Fork, Packed: "02"},
	{Name: "an empty field", Kind: message.Loaded, Fields: []any{""}, Packed: "1100000000"},
	{Name: "a load", Kind: message.Load, Fields: []any{hexOf("function"), hexOf("run-1"), hexOf("/w"), hexOf("app"), hexOf("handle")},
		Packed: "01" + "00000008" + hexOf("function") + "00000005" + hexOf("run-1") + "00000002" + hexOf("/w") + "00000003" + hexOf("app") + "00000006" + hexOf("handle")},
	{Name: "a call", Kind: message.Call, Fields: []any{1, hexOf("i"), 30000, hexOf(`{"a":"ü"}`)},
		Packed: "21" + "00000008" + "0000000000000001" + "00000001" + "69" + "00000008" + "0000000000007530" + "0000000a" + hexOf(`{"a":"ü"}`)},
	{Name: "a grow", Kind: message.Grow, Fields: []any{message.GrowSibling, hexOf("/w"), hexOf("A=ü"), hexOf("B=")},
		Packed: "05" + "00000008" + "0000000000000001" + "00000002" + hexOf("/w") + "00000004" + hexOf("A=ü") + "00000002" + hexOf("B=")},
	{Name: "a negative number", Kind: message.Reaped, Fields: []any{-1}, Packed: "14" + "00000008" + "ffffffffffffffff"},
	{Name: "the largest number", Kind: message.Reap, Fields: []any{1<<63 - 1}, Packed: "03" + "00000008" + "7fffffffffffffff"},
	{Name: "an answer with outputs", Kind: message.Answer, Fields: []any{2, hexOf("null"), hexOf("k"), hexOf("v")},
		Packed: "32" + "00000008" + "0000000000000002" + "00000004" + hexOf("null") + "00000001" + "6b" + "00000001" + "76"},
	{Name: "nothing", Bad: true},
	{Name: "a length cut short", Packed: "01000000", Bad: true},
	{Name: "a field cut short", Packed: "010000000261", Bad: true},
	{Name: "a field beyond everything", Packed: "01ffffffff", Bad: true},
	{Name: "bytes after the last field", Packed: "010000000161ff", Bad: true},
}

func hexOf(text string) string { return hex.EncodeToString([]byte(text)) }

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// golden compares the vectors with the file that the Python side reads.
func golden(t *testing.T, name string, vectors any) {
	t.Helper()
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(vectors); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(have, want.Bytes()) {
		t.Errorf("%s differs from the vectors (%v): run go test -run Vectors -update .", path, err)
	}
}

func TestFrameVectors(t *testing.T) {
	golden(t, "frames.json", frameVectors)
	for _, v := range frameVectors {
		stream := unhex(t, v.Stream)
		got, err := frame.NewReader(bytes.NewReader(stream), v.Limit).Read()
		want := map[string]error{"truncated": frame.ErrTruncated, "chunk": frame.ErrChunkTooLarge, "message": frame.ErrMessageTooLarge}[v.Error]
		if !errors.Is(err, want) || hex.EncodeToString(got) != v.Message {
			t.Errorf("%s: read %x, %v", v.Name, got, err)
		}
		if v.Error == "" {
			if wrote := frame.Append(nil, unhex(t, v.Message), v.Chunk); !bytes.Equal(wrote, stream) {
				t.Errorf("%s: wrote %x", v.Name, wrote)
			}
		}
	}
}

func TestMessageVectors(t *testing.T) {
	golden(t, "messages.json", messageVectors)
	for _, v := range messageVectors {
		m, err := message.Parse(unhex(t, v.Packed))
		if v.Bad {
			if !errors.Is(err, message.ErrMalformed) {
				t.Errorf("%s: parsed, %v", v.Name, err)
			}
			continue
		}
		if err != nil || m.Kind != v.Kind || len(m.Fields) != len(v.Fields) {
			t.Errorf("%s: %v, %v", v.Name, m, err)
			continue
		}
		fields := make([]any, len(v.Fields))
		for i, f := range v.Fields {
			if fields[i] = f; !isText(f) {
				if n, err := m.Number(i); err != nil || n != int64(f.(int)) {
					t.Errorf("%s: field %d is %d, %v", v.Name, i, n, err)
				}
				continue
			}
			if fields[i] = unhex(t, f.(string)); m.Text(i) != string(fields[i].([]byte)) {
				t.Errorf("%s: field %d is %q", v.Name, i, m.Text(i))
			}
		}
		if packed := message.Append(nil, v.Kind, fields...); hex.EncodeToString(packed) != v.Packed {
			t.Errorf("%s: packed %x", v.Name, packed)
		}
	}
}

func isText(f any) bool { _, ok := f.(string); return ok }

// TestKindsAgree compares every kind and code with its Python namesake.
func TestKindsAgree(t *testing.T) {
	source, err := os.ReadFile("python/hearth_pyrunner/message.py")
	if err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{
		"LOAD": num(message.Load), "FORK": num(message.Fork), "REAP": num(message.Reap), "SERVE": num(message.Serve), "GROW": num(message.Grow), "ENTER": num(message.Enter), "LIST": num(message.List), "LISTED": num(message.Listed), "BEGIN": num(message.Begin),
		"LOADED": num(message.Loaded), "REFUSED": num(message.Refused), "FORKED": num(message.Forked), "REAPED": num(message.Reaped),
		"CALL": num(message.Call), "READY": num(message.Ready), "ANSWER": num(message.Answer), "FAILURE": num(message.Failure), "ENTRY": num(message.Entry),
		"HANDLER_INVALID": `"` + message.RefusedHandler + `"`, "LOAD_FAILED": `"` + message.RefusedLoad + `"`, "FORK_FAILED": `"` + message.RefusedFork + `"`,
		"HANDLER_ERROR": `"` + message.FailedHandler + `"`, "PAYLOAD_INVALID": `"` + message.FailedPayload + `"`,
		"RESPONSE_TOO_LARGE": `"` + message.FailedResponse + `"`, "OUTPUTS_INVALID": `"` + message.FailedOutputs + `"`,
		"OUTPUTS_TOO_LARGE": `"` + message.FailedOutputsTooMuch + `"`,
	} {
		if line := "\n" + name + " = " + kind + "\n"; !strings.Contains(string(source), line) {
			t.Errorf("message.py has no line%s", line)
		}
	}
}

func num(k message.Kind) string { return string(mustJSON(int(k))) }

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
