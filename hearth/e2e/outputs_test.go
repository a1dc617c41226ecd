package e2e

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// emitters are functions that set COUNT outputs "kN", their values SIZE bytes long.
var emitters = []struct{ runtime, handler, file, code string }{
	{"python", "emit.emit", "emit.py", `def emit(event, context):
    for i in range(event["count"]):
        context.outputs[f"k{i}"] = "v" * event["size"]
    if event["count"] == 0:
        context.outputs["n"] = 1
    return "set"
`},
	{"bash", "emit.emit", "emit.sh", `emit() {
  local count=${1#*count\":} size=${1#*size\":}
  count=${count%%[,\}]*} size=${size%%[,\}]*}
  local value i; printf -v value '%*s' "$size" ''; value=${value// /v}
  for ((i = 0; i < count; i++)); do echo "k$i=$value" >>"$HEARTH_OUTPUTS"; done
  ((count)) || echo bad >>"$HEARTH_OUTPUTS"
  printf '"set"'
}
`},
}

// invocation is an answer with what came beside it.
type invocation struct {
	RunUID  string `json:"runUid"`
	Output  json.RawMessage
	Outputs map[string]string
}

// What a function puts out beside its answer reaches every kind of caller, within
// its bounds; beyond them the call fails and says so, and the next one works.
func TestFunctionOutputs(t *testing.T) {
	h := up(t)
	for _, e := range emitters {
		t.Run(e.runtime, func(t *testing.T) {
			h.create(t, e.runtime, e.runtime, e.handler, source(t, e.file, e.code))
			want := map[string]string{"k0": "vvv", "k1": "vvv"}
			const payload = `{"count":2,"size":3}`
			h.call(t, e.runtime, payload).wants(t, 200, "")
			var seen invocation
			text := h.envelope(t, e.runtime, payload)
			if err := json.Unmarshal([]byte(text), &seen); err != nil || string(seen.Output) != `"set"` || !maps.Equal(seen.Outputs, want) || seen.RunUID == "" {
				t.Errorf("by HTTP: %v %s", err, text)
			}
			for _, format := range []string{"json", "yaml"} {
				text, _ = h.run(t, 0, "invoke", e.runtime, "-d", payload, "-o", format)
				flat := strings.Join(strings.Fields(strings.ReplaceAll(text, `"`, "")), " ")
				if !strings.Contains(flat, "k0: vvv") && !strings.Contains(flat, "k0:vvv") {
					t.Errorf("by the command line as %s: %s", format, text)
				}
			}
			for _, bad := range []struct{ payload, reason string }{
				{`{"count":65,"size":1}`, "OUTPUTS_TOO_LARGE"}, {`{"count":1,"size":8193}`, "OUTPUTS_TOO_LARGE"},
				{`{"count":9,"size":8192}`, "OUTPUTS_TOO_LARGE"}, {`{"count":0,"size":1}`, "OUTPUTS_INVALID"},
			} {
				h.call(t, e.runtime, bad.payload).wants(t, 502, bad.reason)
			}
			for _, good := range []string{`{"count":64,"size":1}`, `{"count":7,"size":8192}`} {
				h.call(t, e.runtime, good).wants(t, 200, "")
			}
		})
	}
}

// envelope calls a Run and asks for what came beside the answer.
func (h *house) envelope(t *testing.T, name, payload string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, h.doors["gateway"]+"/v1/namespaces/default/runs/"+name+":invoke", strings.NewReader(payload))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/vnd.hearth.invocation+json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// taskStatus is what `hearth run get -o json` tells of a task.
type taskStatus struct {
	Phase, Reason, Message string
	ExitCode               *int
	Stdout, Stderr         string
	Outputs                map[string]string
}

func (h *house) status(t *testing.T, name string) taskStatus {
	t.Helper()
	text, _ := h.run(t, 0, "run", "get", name, "-o", "json")
	var run struct{ Status taskStatus }
	if err := json.Unmarshal([]byte(text), &run); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return run.Status
}

// A task's outputs, and both of its streams, are in its status within their bounds.
func TestTaskOutputs(t *testing.T) {
	h := up(t)
	script := `import os, sys
with open(os.environ["HEARTH_OUTPUTS"], "a") as f:
    f.write("".join(f"k{i}={'v' * int(sys.argv[2])}\n" for i in range(int(sys.argv[1]))))
`
	dir := source(t, "job.py", script)
	python := func(name string, code int, args ...string) taskStatus {
		h.task(t, code, name, []string{"--runtime", "python", "--source", dir, "--entrypoint", "job.py", "--wait"}, args...)
		return h.status(t, name)
	}
	if s := python("within", 0, "7", "8192"); s.Phase != "RUN_PHASE_SUCCEEDED" || len(s.Outputs) != 7 || s.Outputs["k6"] != strings.Repeat("v", 8192) {
		t.Errorf("within the bounds: %s, %d outputs", s.Phase, len(s.Outputs))
	}
	for name, args := range map[string][]string{"keys": {"65", "1"}, "value": {"1", "8193"}, "total": {"9", "8192"}} {
		if s := python(name, 1, args...); s.Phase != "RUN_PHASE_FAILED" || len(s.Outputs) > 0 || !strings.Contains(s.Message, "outputs are too large") || !strings.Contains(s.Message, "at most") && !strings.Contains(s.Message, "more than") {
			t.Errorf("%s: %+v", name, s)
		}
	}
	const most = 1 << 20
	h.task(t, 0, "loud", []string{"--runtime", "bash", "--wait"}, "head -c 3000000 /dev/zero | tr '\\0' x; echo end; head -c 3000000 /dev/zero | tr '\\0' y >&2; echo fin >&2; echo a=b >>\"$HEARTH_OUTPUTS\"")
	s := h.status(t, "loud")
	for stream, text := range map[string]string{"end\n": s.Stdout, "fin\n": s.Stderr} {
		if len(text) > most+1024 || len(text) < most-1024 || !strings.HasSuffix(text, stream) || !strings.Contains(text[:200], "cut") {
			t.Errorf("%q: %d bytes, from %.80q", stream, len(text), text)
		}
	}
	if s.Outputs["a"] != "b" {
		t.Errorf("beside much output: %v", s.Outputs)
	}
}
