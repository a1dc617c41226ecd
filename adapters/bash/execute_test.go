package bash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// ended waits for the end of an execution.
func (h *house) ended(id string) *executorv1.StatusResponse {
	h.t.Helper()
	for {
		res, err := h.runtime.Status(context.Background(), &executorv1.StatusRequest{Id: id})
		if err != nil {
			h.t.Fatal(err)
		}
		if s := res.GetState(); s == executorv1.ExecutionState_EXECUTION_STATE_SUCCEEDED || s == executorv1.ExecutionState_EXECUTION_STATE_FAILED {
			return res
		}
		time.Sleep(time.Millisecond)
	}
}

func TestExecutions(t *testing.T) {
	h := open(t)
	_, dir := h.write("handle() { echo \"called with $1\"; echo warn >&2; }\nbad() { echo why >&2; exit 6; }\nlife() { trap '' TERM; sleep 1000; }\n")
	_, scripted := h.write("")
	for path, text := range map[string]string{
		filepath.Join(dir, "main.sh"):     `echo "main $# $1 $GREETING $HEARTH_RUN_UID"; [[ -w $HEARTH_OUTPUTS ]]`,
		filepath.Join(scripted, "script"): `echo "script $*"`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := func(a ...string) *executorv1.ExecuteRequest { return &executorv1.ExecuteRequest{Args: a} }
	for id, tc := range map[string]struct {
		req                     *executorv1.ExecuteRequest
		code                    int32
		stdout, stderr, message string
	}{
		"one":        {args(`echo "hi $0"; echo no >&2; exit 3`), 3, "hi ", "no\n", "exited with status 3"},
		"several":    {args("x=1", "echo $x"), 0, "1\n", "", ""},
		"sh":         {args("sh", "-c", `echo "$0 $1"`, "a", "b"), 0, "a b\n", "", ""},
		"bash":       {args("bash", "-c", `echo ${BASH_VERSION:+bash}`), 0, "bash\n", "", ""},
		"signal":     {args(`kill -KILL $$`), 137, "", "", "ended by signal 9 (killed)"},
		"orphans":    {args(`setsid sleep 1000 & sleep 1000 & echo done`), 0, "done\n", "", ""},
		"flood":      {args(`yes | head -c 3M; echo end`), 0, "[hearth: 3145732 bytes in all; the beginning was cut here]\n", "", ""},
		"binary":     {args(`printf 'a\377b'`), 0, "a\ufffdb", "", ""},
		"entrypoint": {&executorv1.ExecuteRequest{WorkingDir: dir, Entrypoint: "main.sh", Args: []string{"x y"}, Env: map[string]string{"GREETING": "hey"}}, 0, "main 1 x y hey entrypoint\n", "", ""},
		"script":     {&executorv1.ExecuteRequest{WorkingDir: scripted, Args: []string{"a"}}, 0, "script a\n", "", ""},
		"handler":    {&executorv1.ExecuteRequest{WorkingDir: dir, Handler: "app.handle", Args: []string{"a", "b"}}, 0, "called with {\"args\":[\"a\",\"b\"]}\n", "warn\n", ""},
		"no-args":    {&executorv1.ExecuteRequest{WorkingDir: dir, Handler: "app.handle"}, 0, "called with {\"args\":[]}\n", "warn\n", ""},
		"bad":        {&executorv1.ExecuteRequest{WorkingDir: dir, Handler: "app.bad"}, 6, "", "why\n", "app.bad exited with status 6"},
		"missing":    {&executorv1.ExecuteRequest{WorkingDir: dir, Handler: "app.none"}, 1, "", "", "app.sh defines no function none"},
		"late":       {&executorv1.ExecuteRequest{Args: []string{`trap '' TERM; setsid sleep 1000 & sleep 1000`}, TimeoutSeconds: 1}, 137, "", "", "timed out after 1s"},
		"late-call":  {&executorv1.ExecuteRequest{WorkingDir: dir, Handler: "app.life", TimeoutSeconds: 1}, 1, "", "", "timed out after 1s"},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			tc.req.Id = id
			for range 2 { // a repeat is the same execution
				if _, err := h.runtime.Execute(context.Background(), tc.req); err != nil {
					t.Fatal(err)
				}
			}
			res := h.ended(id)
			want := executorv1.ExecutionState_EXECUTION_STATE_SUCCEEDED
			if tc.message != "" {
				want = executorv1.ExecutionState_EXECUTION_STATE_FAILED
			}
			if res.GetState() != want || !strings.HasPrefix(res.GetStdout(), tc.stdout) || res.GetStderr() != tc.stderr || !strings.HasPrefix(res.GetErrorMessage(), tc.message) ||
				res.GetExitCode() != tc.code && !strings.HasPrefix(id, "late") || len(res.GetStdout()) > 1<<20 {
				t.Errorf("%s exit %d stdout %.80q stderr %q message %q", res.GetState(), res.GetExitCode(), res.GetStdout(), res.GetStderr(), res.GetErrorMessage())
			}
		})
	}
}

func TestExecutionRefusals(t *testing.T) {
	h := open(t)
	_, dir := h.write("handle() { :; }")
	ctx := context.Background()
	for name, req := range map[string]*executorv1.ExecuteRequest{
		"nothing":             {},
		"absolute entrypoint": {WorkingDir: dir, Entrypoint: "/bin/ls"},
		"leaving entrypoint":  {WorkingDir: dir, Entrypoint: "../../x"},
		"missing entrypoint":  {WorkingDir: dir, Entrypoint: "none.sh"},
		"foreign folder":      {WorkingDir: "/etc", Entrypoint: "passwd"},
		"own folder":          {WorkingDir: filepath.Join(h.workspace, ".hearth"), Args: []string{"ls"}},
		"handler form":        {WorkingDir: dir, Handler: "app"},
		"handler, no folder":  {Handler: "app.handle"},
		"nul":                 {Args: []string{"a\x00b"}},
		"long script":         {Args: []string{strings.Repeat("#", 1<<17)}},
		"reserved env":        {Args: []string{"ls"}, Env: map[string]string{"HEARTH_X": "1"}},
	} {
		req.Id = "x"
		if _, err := h.runtime.Execute(ctx, req); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := h.runtime.List(ctx, &executorv1.ListRequest{})
	if err != nil || len(list.GetEntries()) != 0 {
		t.Errorf("what was refused is listed: %v %v", list, err)
	}
}

func TestExecutionLife(t *testing.T) {
	h := open(t)
	ctx := context.Background()
	req := &executorv1.ExecuteRequest{Id: "a", Args: []string{`trap '' TERM; echo begun; sleep 1000`}}
	if _, err := h.runtime.Execute(ctx, req); err != nil {
		t.Fatal(err)
	}
	other := &executorv1.ExecuteRequest{Id: "a", Args: []string{"ls"}}
	if _, err := h.runtime.Execute(ctx, other); connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Errorf("the ID with another request: %v", err)
	}
	for {
		res, err := h.runtime.Status(ctx, &executorv1.StatusRequest{Id: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if res.GetStdout() == "begun\n" {
			if res.GetState() != executorv1.ExecutionState_EXECUTION_STATE_RUNNING {
				t.Errorf("%s", res.GetState())
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := h.runtime.Forget(ctx, &executorv1.ForgetRequest{Id: "a"}); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("forget a running one: %v", err)
	}
	for range 3 {
		if _, err := h.runtime.Cancel(ctx, &executorv1.CancelRequest{Id: "a"}); err != nil {
			t.Error(err)
		}
	}
	if res := h.ended("a"); res.GetErrorMessage() != "canceled" || res.GetExitCode() != 137 || res.GetState() != executorv1.ExecutionState_EXECUTION_STATE_FAILED {
		t.Errorf("%v", res)
	}
	// A client that has forgotten everything finds it again.
	list, err := h.runtime.List(ctx, &executorv1.ListRequest{})
	if err != nil || len(list.GetEntries()) != 1 || list.GetEntries()[0].GetId() != "a" || list.GetEntries()[0].GetStdout() != "begun\n" {
		t.Errorf("%v %v", list, err)
	}
	if _, err := h.runtime.Cancel(ctx, &executorv1.CancelRequest{Id: "a"}); err != nil {
		t.Errorf("cancel after the end: %v", err)
	}
	if _, err := h.runtime.Forget(ctx, &executorv1.ForgetRequest{Id: "a"}); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"status": second(h.runtime.Status(ctx, &executorv1.StatusRequest{Id: "a"})),
		"cancel": second(h.runtime.Cancel(ctx, &executorv1.CancelRequest{Id: "a"})),
		"forget": second(h.runtime.Forget(ctx, &executorv1.ForgetRequest{Id: "a"})),
	} {
		if connect.CodeOf(err) != connect.CodeNotFound || edge.Reason(err) != "EXECUTION_NOT_FOUND" {
			t.Errorf("%s of one that was forgotten: %v", name, err)
		}
	}
	if res, err := h.runtime.Health(ctx, &executorv1.HealthRequest{}); err != nil || !res.GetHealthy() {
		t.Errorf("%v %v", res, err)
	}
}

func second[T any](_ T, err error) error { return err }

// What an attempt of a Run writes is in the Run's log, that of the next attempt
// behind it; an execution of nothing that is a Run has no log.
func TestExecutionsLog(t *testing.T) {
	h := open(t)
	for _, id := range []string{"run-1.1", "run-1.2.node-a", "loner", "a/run-1.3"} {
		req := &executorv1.ExecuteRequest{Id: id, Args: []string{"echo out " + filepath.Base(id) + "; printf err >&2"}}
		if _, err := h.runtime.Execute(context.Background(), req); err != nil {
			t.Fatal(err)
		}
		if res := h.ended(id); res.GetExitCode() != 0 {
			t.Errorf("%s: %v", id, res)
		}
	}
	logs := filepath.Join(h.workspace, ".hearth", "logs")
	if left, err := os.ReadDir(logs); err != nil || len(left) != 1 {
		t.Errorf("logs: %v, %v", left, err)
	}
	data, err := os.ReadFile(filepath.Join(logs, "run-1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	last := 0
	for line := range bytes.Lines(data) {
		var e struct {
			Run     string `json:"run_uid"`
			Stream  string
			Message string
			Seq     int
		}
		if err := json.Unmarshal(line, &e); err != nil || e.Run != "run-1" || e.Seq != last+1 {
			t.Errorf("%s: %v", line, err)
		}
		last = e.Seq
		of[e.Stream] += e.Message + "|"
	}
	if of["stdout"] != "out run-1.1|out run-1.2.node-a|" || of["stderr"] != "err|err|" {
		t.Errorf("%q", of)
	}
}

// A server that stops in the middle of executions leaves nothing of them: open's
// cleanup waits for Run and the keeper's Close finds any process that is left.
func TestStopEndsExecutions(t *testing.T) {
	h := open(t)
	pids := filepath.Join(h.workspace, "pids")
	req := &executorv1.ExecuteRequest{Id: "a", Args: []string{`trap '' TERM; echo $$ >>` + pids + `; setsid sleep 1000 & echo $! >>` + pids + `; sleep 1000`}}
	if _, err := h.runtime.Execute(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	f := &function{house: h, dir: h.workspace}
	f.appears("pids", 2)
	h.stop()
	f.gone(2)
}
