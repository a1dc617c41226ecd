package runtimetest

import (
	"bytes"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"
)

func outputCases() []Case {
	return []Case{
		must("FR-OUT-01", notesLimits, "An output of exactly 1 MiB is answered.", outputFull, "size"),
		must("FR-OUT-02", notesCodes, "An output of 1 MiB and one byte is ResourceExhausted with reason RESPONSE_TOO_LARGE, and the next call runs.", outputOver(1<<20+1), "size"),
		must("FR-OUT-03", notesLimits, "An output of 48 MiB is refused the same way: nobody reads it all.", outputOver(48<<20), "size"),
		must("FR-OUT-04", notesOpen, "The content type of a JSON answer is application/json.", outputJSON, "echo"),
		must("FR-OUT-05", notesOpen, "A raw answer that is UTF-8 and no JSON is text/plain; charset=utf-8, byte for byte.", outputRaw("text", "h\xc3\xa9\n", "text/plain; charset=utf-8"), "text"),
		must("FR-OUT-06", notesOpen, "A raw answer that is not UTF-8 is application/octet-stream, byte for byte.", outputRaw("binary", "\xff\x00\n", "application/octet-stream"), "binary"),
		must("FR-OUT-07", notesOpen, "A raw answer that parses as JSON is application/json, byte for byte.", outputRaw("json", "{\"a\": 1}\n", jsonType), "json"),
		must("FR-OUT-08", notesOpen, "A value that JSON cannot carry is HANDLER_ERROR, and the next call runs.", outputUnencodable, "unencodable"),
		must("FR-OUT-09", notesOpen, "What a handler prints beside its answer never reaches the output.", outputNoise, "noise"),
		must("FR-OUT-10", notesOpen, "What a background process of an earlier call writes never reaches an output.", outputLate, "late"),
		must("FR-OUT-11", notesLimits, "64 outputs are answered.", outputsTaken(64, 10, 10), "outputs"),
		should("FR-OUT-12", notesLimits, "65 outputs are refused; runtimed sees to it too.", outputsRefused(65, 10, 10), "outputs"),
		must("FR-OUT-13", notesLimits, "An output's key of 128 bytes is answered.", outputsTaken(1, 128, 10), "outputs"),
		should("FR-OUT-14", notesLimits, "An output's key of 129 bytes is refused; runtimed sees to it too.", outputsRefused(1, 129, 10), "outputs"),
		must("FR-OUT-15", notesLimits, "An output's value of 8 KiB is answered.", outputsTaken(1, 10, 8<<10), "outputs"),
		should("FR-OUT-16", notesLimits, "An output's value of 8 KiB and one byte is refused; runtimed sees to it too.", outputsRefused(1, 10, 8<<10+1), "outputs"),
		must("FR-OUT-17", notesLimits, "Outputs of 64 KiB in all, keys and values, are answered.", outputsTaken(16, 96, 4000), "outputs"),
		should("FR-OUT-18", notesLimits, "Outputs of more than 64 KiB in all are refused; runtimed sees to it too.", outputsRefused(16, 97, 4000), "outputs"),
		should("FR-OUT-19", notesLimits, "An output with an empty key is refused; runtimed sees to it too.", outputsRefused(1, 0, 10), "outputs"),
		must("FR-OUT-20", invocation, "Outputs belong to one invocation: the next one has none of them.", outputsFresh, "outputs"),
	}
}

func outputFull(t *T) {
	res, err := t.ready("size").invoke(1 << 20)
	t.ok(err, "an output of 1 MiB")
	t.check(len(res.GetOutput()) == 1<<20, "1048576 bytes", "%d", len(res.GetOutput()))
}

func outputOver(n int) func(*T) {
	return func(t *T) {
		f := t.ready("size")
		_, err := f.invoke(n)
		t.refused(err, fmt.Sprintf("an output of %d bytes", n), connect.CodeResourceExhausted, "RESPONSE_TOO_LARGE")
		f.answers(3, `"a"`)
	}
}

func outputJSON(t *T) {
	res := t.ready("echo").answers(map[string]int{"a": 1}, `{"a":1}`)
	t.check(res.GetContentType() == jsonType, jsonType, "%q", res.GetContentType())
}

func outputRaw(behaviour, want, contentType string) func(*T) {
	return func(t *T) {
		res, err := t.ready(behaviour).invoke(1)
		t.ok(err, "the invocation")
		t.check(string(res.GetOutput()) == want, fmt.Sprintf("the output %q", want), "%s", clip(res.GetOutput()))
		t.check(res.GetContentType() == contentType, contentType, "%q", res.GetContentType())
	}
}

func outputUnencodable(t *T) {
	f := t.ready("unencodable")
	for range 2 {
		_, err := f.invoke(1)
		t.refused(err, "the answer", connect.CodeInternal, "HANDLER_ERROR")
	}
}

func outputNoise(t *T) {
	f := t.ready("noise")
	for _, n := range []int{10, 300_000, 2 << 20} {
		f.answers(n, `"quiet"`)
	}
}

// outputLate lets a call have what its own background process has written before
// it ended, where standard output is the answer.
func outputLate(t *T) {
	f := t.ready("late")
	for call := range 4 {
		res, err := f.invoke(call)
		t.ok(err, "the invocation")
		t.check(bytes.HasPrefix(res.GetOutput(), []byte(`"early"`)), `the output "early"`, "%s", clip(res.GetOutput()))
		for earlier := range call {
			t.check(lacking(res.GetOutput(), fmt.Sprint("LATE", earlier)), "only the call's own output", "%s", clip(res.GetOutput()))
		}
		t.pause(150 * time.Millisecond)
	}
}

func (f *function) sets(count, key, value int) (*invoked, error) {
	return f.invoke(fmt.Sprintf("%d %d %d", count, key, value))
}

func outputsTaken(count, key, value int) func(*T) {
	return func(t *T) {
		res, err := t.ready("outputs").sets(count, key, value)
		t.ok(err, "the invocation")
		t.check(len(res.GetOutputs()) == count, fmt.Sprintf("%d outputs", count), "%d", len(res.GetOutputs()))
		for k, v := range res.GetOutputs() {
			t.check(len(k) == key && len(v) == value, fmt.Sprintf("keys of %d and values of %d bytes", key, value), "%d and %d", len(k), len(v))
		}
	}
}

func outputsRefused(count, key, value int) func(*T) {
	return func(t *T) {
		f := t.ready("outputs")
		_, err := f.sets(count, key, value)
		what := fmt.Sprintf("%d outputs with keys of %d and values of %d bytes", count, key, value)
		t.check(err != nil, what+" to be refused", "OK")
		t.refused(err, what, connect.CodeOf(err), "OUTPUTS_TOO_LARGE", "OUTPUTS_INVALID")
		_, err = f.sets(1, 2, 3)
		t.ok(err, "the next invocation")
	}
}

func outputsFresh(t *T) {
	f := t.ready("outputs")
	_, err := f.sets(3, 10, 10)
	t.ok(err, "the invocation")
	res, err := f.sets(0, 1, 1)
	t.ok(err, "the next invocation")
	t.check(len(res.GetOutputs()) == 0, "no outputs", "%d", len(res.GetOutputs()))
	t.check(bytes.Contains(res.GetOutput(), []byte("set")), "the handler's answer", "%s", clip(res.GetOutput()))
}
