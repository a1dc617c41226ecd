package bash_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/edge"
)

func TestAnswers(t *testing.T) {
	f := open(t).register(`
count=0
handle() {
  count=$((count + 1))
  case $1 in
    echo*) printf '%s' "$1" ;;
    line) echo line; echo ;;
    json) echo '{"a": [1, 2]}' ;;
    bytes) printf 'a\0\377b' ;;
    nothing) ;;
    count) echo "$count" ;;
    env) echo "$GREETING|$HOME|$LANG|$TZ|$HEARTH_RUN_UID|$HEARTH_ATTEMPT|${HEARTH_INVOCATION_ID:+set}|$#|$PWD" ;;
    all) env ;;
    stdin) cat ;;
    device) echo one >/dev/stdout; echo two ;;
    fds) ls /proc/self/fd | wc -l ;;
  esac
}`)
	for _, tc := range []struct{ input, want, contentType string }{
		{"line", "line\n\n", "text/plain; charset=utf-8"},
		{"json", "{\"a\": [1, 2]}\n", "application/json"},
		{"bytes", "a\x00\xffb", "application/octet-stream"},
		{"nothing", "", "text/plain; charset=utf-8"},
		{"", "", "text/plain; charset=utf-8"},
		{"count", "1\n", "application/json"},
		{"count", "1\n", "application/json"},
		{"env", "hello world||" + "|", ""},
		{"stdin", "", "text/plain; charset=utf-8"},
		{"device", "one\ntwo\n", "text/plain; charset=utf-8"},
		{"fds", "4\n", "application/json"},
		{"echo $(touch pwned) `touch pwned` ${x} \\ \" ' \n\n", "echo $(touch pwned) `touch pwned` ${x} \\ \" ' \n\n", "text/plain; charset=utf-8"},
		{"echo \xff\xfe é", "echo \xff\xfe é", "application/octet-stream"},
	} {
		if tc.input == "env" {
			continue
		}
		res, err := f.invoke(context.Background(), 0, tc.input)
		if err != nil {
			t.Fatalf("%q: %v", tc.input, err)
		}
		if string(res.GetOutput()) != tc.want || res.GetContentType() != tc.contentType {
			t.Errorf("%q: %q %q", tc.input, res.GetOutput(), res.GetContentType())
		}
	}
	env := strings.Split(f.call("env"), "|")
	if len(env) != 9 || env[0] != "hello world" || env[2] != "C.UTF-8" || env[3] != "UTC" || env[4] != f.uid || env[5] != "1" || env[6] != "set" || env[7] != "1" || env[8] != f.dir+"\n" {
		t.Errorf("env %q", env)
	}
	all := f.call("all")
	for _, line := range strings.Split(all, "\n") {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "", "PATH", "HOME", "LANG", "TZ", "TMPDIR", "GREETING", "PWD", "SHLVL", "OLDPWD", "_",
			"HEARTH_RUN_UID", "HEARTH_ATTEMPT", "HEARTH_INVOCATION_ID", "HEARTH_OUTPUTS":
		default:
			t.Errorf("%s is in the environment of user code", name)
		}
	}
	if _, err := os.Stat(filepath.Join(f.dir, "pwned")); err == nil {
		t.Error("a payload was evaluated")
	}
	f.fails(0, "a\x00b", connect.CodeInvalidArgument, "INVALID_ARGUMENT")
}

func TestLargePayloads(t *testing.T) {
	f := open(t).register(`handle() { printf '%s' "$1"; }`)
	for _, size := range []int{0, 100, 200 << 10, 1<<20 - 1, 1 << 20} {
		input := strings.Repeat("0123456789abcde\n", size/16+1)[:size]
		if got := f.call(input); got != input {
			t.Errorf("%d bytes came back as %d", size, len(got))
		}
	}
	f.fails(0, strings.Repeat("x", 1<<20+1), connect.CodeInvalidArgument, "INVALID_ARGUMENT")
}

func TestTooLarge(t *testing.T) {
	f := open(t).register(`
handle() {
  case $1 in
    exact) head -c 1048576 /dev/zero ;;
    over) head -c 1048577 /dev/zero ;;
    flood) yes ;;
    ok) echo ok ;;
  esac
}`)
	if got := f.call("exact"); got != strings.Repeat("\x00", 1<<20) {
		t.Errorf("%d bytes", len(got))
	}
	for _, input := range []string{"over", "flood"} {
		f.fails(0, input, connect.CodeResourceExhausted, "RESPONSE_TOO_LARGE")
		if got := f.call("ok"); got != "ok\n" {
			t.Errorf("after %s: %q", input, got)
		}
	}
}

func TestHandlerErrors(t *testing.T) {
	f := open(t).register(`
handle() {
  case $1 in
    exit) echo "what went wrong" >&2; exit 3 ;;
    return) return 4 ;;
    signal) kill -TERM $BASHPID; sleep 10 ;;
    parent) kill -KILL $$; sleep 10 ;;
    missing) no_such_command ;;
    ok) echo ok ;;
  esac
}`)
	for _, tc := range []struct{ input, kind, code, trace string }{
		{"exit", "exit", "3", "what went wrong"},
		{"return", "exit", "4", ""},
		{"signal", "signal", "143", ""},
		{"parent", "signal", "137", ""},
		{"missing", "exit", "127", "no_such_command: command not found"},
	} {
		err := f.fails(0, tc.input, connect.CodeInternal, "HANDLER_ERROR")
		meta := edge.Info(err).GetMetadata()
		if meta["type"] != tc.kind || meta["exit_code"] != tc.code || meta["run_uid"] != f.uid || meta["invocation_id"] == "" || !strings.Contains(edge.DebugText(err), tc.trace) {
			t.Errorf("%s: %v %q", tc.input, meta, edge.DebugText(err))
		}
		if got := f.call("ok"); got != "ok\n" {
			t.Errorf("after %s: %q", tc.input, got)
		}
	}
	if log := f.log(); !strings.Contains(log, `"stream":"stderr"`) || !strings.Contains(log, "what went wrong") {
		t.Errorf("log %s", log)
	}
}

func TestOutputs(t *testing.T) {
	f := open(t).register(`
handle() {
  case $1 in
    two) echo "a=1" >>"$HEARTH_OUTPUTS"; echo "b=x=y" >>"$HEARTH_OUTPUTS" ;;
    bad) echo "no separator" >"$HEARTH_OUTPUTS" ;;
    big) printf 'k=%8193s\n' x >"$HEARTH_OUTPUTS" ;;
    huge) head -c 100M /dev/zero >"$HEARTH_OUTPUTS" ;;
    fifo) rm "$HEARTH_OUTPUTS"; mkfifo "$HEARTH_OUTPUTS" ;;
    link) rm "$HEARTH_OUTPUTS"; ln -s /etc/passwd "$HEARTH_OUTPUTS" ;;
    gone) rm -r "$TMPDIR" ;;
  esac
}`)
	res, err := f.invoke(context.Background(), 0, "two")
	if err != nil || len(res.GetOutputs()) != 2 || res.GetOutputs()["a"] != "1" || res.GetOutputs()["b"] != "x=y" {
		t.Errorf("%v %v", res, err)
	}
	for input, want := range map[string]string{"bad": "OUTPUTS_INVALID", "big": "OUTPUTS_TOO_LARGE", "huge": "OUTPUTS_TOO_LARGE", "fifo": "OUTPUTS_INVALID", "link": "OUTPUTS_INVALID"} {
		if _, err := f.invoke(context.Background(), 0, input); edge.Reason(err) != want {
			t.Errorf("%s: %v, reason %s", input, err, edge.Reason(err))
		}
		if res, err := f.invoke(context.Background(), 0, "two"); err != nil || len(res.GetOutputs()) != 2 {
			t.Errorf("after %s: %v %v", input, res, err)
		}
	}
	f.call("gone")
	if res, err := f.invoke(context.Background(), 0, "two"); err != nil || len(res.GetOutputs()) != 2 {
		t.Errorf("after the folder went: %v %v", res, err)
	}
}
