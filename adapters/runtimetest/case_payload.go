package runtimetest

import (
	"bytes"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
)

func payloadCases() []Case {
	odd := func(id, claim, payload string) Case {
		return must(id, notesCodes, claim, func(t *T) { t.survives([]byte(payload)) }, "echo")
	}
	return []Case{
		odd("FR-PAY-01", "An empty payload is answered or InvalidArgument, and the next call runs.", ""),
		odd("FR-PAY-02", "A payload that is not UTF-8 is answered or InvalidArgument, and the next call runs.", "\"\xff\xfe\xc3\""),
		odd("FR-PAY-03", "A payload with a NUL is answered or InvalidArgument, and the next call runs.", "\"a\x00b\""),
		odd("FR-PAY-04", "JSON a hundred thousand levels deep is answered or refused, and the next call runs.", strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)),
		odd("FR-PAY-05", "JSON with a key twice is answered or refused, and the next call runs.", `{"a":1,"a":2}`),
		odd("FR-PAY-06", "A lone surrogate is answered or refused, and the next call runs.", `"\ud800"`),
		odd("FR-PAY-07", "Numbers beyond every range are answered or refused, and the next call runs.", `[1e999999,-1e-999999,`+strings.Repeat("9", 10_000)+`]`),
		must("FR-PAY-08", notesCodes, "A payload of application/json that is no JSON is InvalidArgument where handlers get it decoded.", payloadNotJSON, "echo", "decoder"),
		must("FR-PAY-09", builtin, "A payload is data: nothing in it is evaluated, expanded or interpolated.", payloadIsData, "echo"),
		must("FR-PAY-10", invocation, "A payload of application/json with a charset parameter is JSON.", payloadCharset, "echo"),
		must("FR-PAY-11", invocation, "A payload of an unknown content type is answered or InvalidArgument, and the next call runs.", payloadUnknownType, "echo"),
		must("FR-PAY-12", builtin, "A payload with white space, quotes, backslashes and line ends arrives as it was sent.", payloadExact, "echo"),
	}
}

// survives sends bytes to echo: an answer, or a refusal that blames the payload
// or the handler, and then a call as if nothing had happened.
func (t *T) survives(input []byte) {
	f := t.ready("echo")
	_, err := f.send(input)
	t.blames(err)
	f.answers(1, "1")
}

func (t *T) blames(err error) {
	if err == nil || (answered(err) && connect.CodeOf(err) == connect.CodeInvalidArgument) {
		return
	}
	t.refused(err, "the payload", connect.CodeInternal, "HANDLER_ERROR")
}

func payloadNotJSON(t *T) {
	f := t.ready("echo")
	for _, bad := range []string{"{", "nul", "{'a': 1}", "[1,]", "1 2"} {
		_, err := f.send([]byte(bad))
		t.refused(err, "the payload "+bad, connect.CodeInvalidArgument)
	}
	f.answers(1, "1")
}

func payloadIsData(t *T) {
	f := t.ready("echo")
	for _, evil := range []string{
		"$(touch pwned)", "`touch pwned`", "; touch pwned", "\"; touch pwned; \"", "' ; touch pwned ; '",
		"${HOME}", "$HOME", "*", "-n", "-e a\\nb", "%s%d", "\\x41", "a[$(touch pwned)]", "__import__('os').system('touch pwned')",
	} {
		req := f.request(evil)
		res, err := t.beginInvoke(req).wait(t)
		t.ok(err, "the invocation with "+evil)
		t.answered(res, string(req.GetInput()))
	}
	t.check(!f.there("pwned"), "no command of a payload to run", "one ran")
}

func (f *function) typed(contentType string) (*invoked, error) {
	return f.t.beginInvoke(&executorv1.InvokeFunctionRequest{Registration: f.ref, Input: []byte(`{"a":1}`), ContentType: contentType}).wait(f.t)
}

func payloadCharset(t *T) {
	f := t.ready("echo")
	res, err := f.typed("application/json; charset=utf-8")
	t.ok(err, "the invocation")
	t.answered(res, `{"a":1}`)
}

func payloadUnknownType(t *T) {
	f := t.ready("echo")
	_, err := f.typed("application/x-unknown")
	t.blames(err)
	f.answers(1, "1")
}

func payloadExact(t *T) {
	f := t.ready("echo")
	for _, s := range []string{"", " ", "  a  b  ", "a\nb\r\nc\t", "\\", `\\n`, `"`, `'`, "é€😀", "a\n\n", "--", "0x10", "null"} {
		req := f.request(s)
		res, err := t.beginInvoke(req).wait(t)
		t.ok(err, "the invocation")
		t.answered(res, string(req.GetInput()))
	}
	for _, raw := range []string{"0", "-1.5e3", "true", "null", "[]", "{}", ` {"a" : [ 1 , null ] } `, `"\u00e9\n"`} {
		res, err := f.send([]byte(raw))
		t.ok(err, "the invocation with "+raw)
		t.answered(res, raw)
	}
}

// lacking says whether b has none of the texts.
func lacking(b []byte, texts ...string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool { return bytes.Contains(b, []byte(s)) })
}
