package bash_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
)

// walls runs a test with cgroups, where there are some, and without.
func walls(t *testing.T, test func(t *testing.T, h *house)) {
	for _, without := range []bool{false, true} {
		t.Run(map[bool]string{false: "cgroup", true: "walk"}[without], func(t *testing.T) {
			test(t, open(t, func(c *runtimeserver.Config) { c.NoCgroup = without }))
		})
	}
}

// survivors starts everything that is known to outlive a simple kill and writes
// the pids into the file "pids".
const survivors = `
survivors() {
  trap '' TERM HUP INT
  rm -f ready
  echo $BASHPID >>pids
  sleep 1000 & echo $! >>pids
  setsid bash -c 'trap "" TERM HUP INT; echo $$ >>pids; sleep 1000 & echo $! >>pids; echo ready >>ready; wait' &
  ( setsid bash -c 'echo $$ >>pids; echo ready >>ready; exec sleep 1000' & )
  ( ( sleep 1000 & echo $! >>pids ) & )
  until [[ -e ready && $(wc -l <ready) -ge 2 && $(wc -l <pids) -ge 6 ]]; do :; done
  rm ready
}
`

// gone checks that none of the processes in the file "pids" is left.
func (f *function) gone(atLeast int) {
	f.t.Helper()
	path := filepath.Join(f.dir, "pids")
	data, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	pids := strings.Fields(string(data))
	if len(pids) < atLeast {
		f.t.Errorf("only %d processes were started", len(pids))
	}
	for _, pid := range pids {
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil {
			f.t.Errorf("process %s is left: %s", pid, stat)
		}
	}
	if err := os.Remove(path); err != nil {
		f.t.Fatal(err)
	}
}

func TestNothingIsLeft(t *testing.T) {
	walls(t, func(t *testing.T, h *house) {
		f := h.register(survivors + `
handle() {
  case $1 in
    answer) survivors; echo done ;;
    fail) survivors; exit 9 ;;
    hang) survivors; while :; do sleep 1000; done ;;
    ok) echo ok ;;
  esac
}`)
		ok := func(after string) {
			t.Helper()
			if got := f.call("ok"); got != "ok\n" {
				t.Errorf("after %s: %q", after, got)
			}
		}
		if got := f.call("answer"); got != "done\n" {
			t.Errorf("answer %q", got)
		}
		f.gone(6)
		ok("an answer")
		f.fails(0, "fail", connect.CodeInternal, "HANDLER_ERROR")
		f.gone(6)
		ok("a failure")
		f.fails(700*time.Millisecond, "hang", connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED")
		f.gone(6)
		ok("a timeout")
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			f.inFlight(1)
			f.appears("pids", 6)
			cancel()
		}()
		if _, err := f.invoke(ctx, 0, "hang"); connect.CodeOf(err) != connect.CodeCanceled {
			t.Errorf("cancel: %v", err)
		}
		f.inFlight(0)
		f.gone(6)
		ok("a cancel")
		go func() { _, _ = f.invoke(context.Background(), 0, "hang") }()
		f.inFlight(1)
		f.appears("pids", 6)
		f.unregister()
		f.gone(6)
		if _, err := f.invoke(context.Background(), 0, "ok"); edge.Reason(err) != "RUN_NOT_FOUND" {
			t.Errorf("after unregister: %v", err)
		}
	})
}

// inFlight waits until the status says so.
func (f *function) inFlight(want int32) {
	for f.status().GetInFlight() != want {
		time.Sleep(time.Millisecond)
	}
}

// appears waits until a file beneath the working directory has so many lines.
func (f *function) appears(name string, lines int) {
	for {
		data, _ := os.ReadFile(filepath.Join(f.dir, name))
		if strings.Count(string(data), "\n") >= lines {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// What the load leaves running is ended with it, and the log says so.
func TestLoadLeavesNothing(t *testing.T) {
	walls(t, func(t *testing.T, h *house) {
		f := h.register(`
( trap '' TERM; while :; do echo noise; echo noise >&2; sleep 0.001; done ) &
echo $! >>pids
setsid sleep 1000 & echo $! >>pids
handle() { sleep 0.05; echo answer; }`)
		for range 3 {
			if got := f.call(""); got != "answer\n" {
				t.Errorf("answer %q", got)
			}
		}
		f.gone(2)
		if !strings.Contains(f.log(), "left processes running while it was sourced") {
			t.Error("the log does not say so")
		}
	})
}

// What one call leaves running cannot reach a later one's answer or log.
func TestLeakedWriter(t *testing.T) {
	walls(t, func(t *testing.T, h *house) {
		f := h.register(`
handle() {
  if [[ $1 == leak ]]; then
    rm -f near far
    ( trap '' TERM; while :; do echo leaked; echo leaked >&2; : >near; done ) &
    setsid bash -c 'while :; do echo leaked; echo leaked >&2; : >far; done' &
    until [[ -e near && -e far ]]; do :; done
    echo first
  else
    sleep 0.02; echo second
  fi
}`)
		for range 5 {
			got := f.call("leak")
			if !strings.Contains(got, "first\n") {
				t.Errorf("answer %.40q", got)
			}
			if got := f.call("next"); got != "second\n" {
				t.Errorf("the next answer is %.40q", got)
			}
		}
		for _, line := range strings.Split(f.log(), "\n") {
			if strings.Contains(line, `"message":"second`) {
				t.Error("an answer is in the log")
			}
		}
	})
}

// Each of these gets a clear error or its answer, and the next call works.
func TestSharpCorners(t *testing.T) {
	for _, tc := range []struct {
		name, body, want, reason string
	}{
		{"a line of 100 MiB on stderr", `head -c 100M /dev/zero | tr '\0' x >&2; echo done`, "done\n", ""},
		{"a binary flood on stderr", `head -c 4M /dev/urandom >&2; echo done`, "done\n", ""},
		{"a flood of lines on stderr", `yes | head -n 200000 >&2; echo done`, "done\n", ""},
		{"closes fd 1", `exec 1>&-; exit 0`, "", ""},
		{"closes fd 1 and writes", `exec 1>&-; echo x`, "", "HANDLER_ERROR"},
		{"closes fd 0 to 2", `exec 0<&- 1>&- 2>&-; exit 0`, "", ""},
		{"writes to fd 3 to 20", `for fd in {3..20}; do echo garbage >&$fd; done 2>/dev/null; echo done`, "done\n", ""},
		{"writes to every descriptor", `for fd in /proc/self/fd/*; do echo garbage >$fd; done 2>/dev/null; exit 0`, "*", ""},
		{"changes cwd, umask, locale", `cd /; umask 777; export LC_ALL=xx_YY.UTF-8; echo done`, "done\n", ""},
		{"sets options", `set -eux -o pipefail -f -C; shopt -s failglob nullglob extglob; echo done`, "done\n", ""},
		{"sets every trap", `trap 'echo bye' EXIT; trap : ERR DEBUG RETURN; trap '' HUP INT TERM QUIT CHLD PIPE; echo done`, "done\nbye\n", ""},
		{"removes functions and IFS", `unset -f handle; IFS=xyz; unset HEARTH_OUTPUTS; echo done`, "done\n", ""},
		{"exec", `exec echo replaced`, "replaced\n", ""},
		{"forks", `for i in {1..50}; do sleep 1000 & done; echo done`, "done\n", ""},
		// Stopped before the warm bash waits, it counts as ended by signal 19; else
		// its deadline ends it.
		{"stops itself", `kill -STOP $BASHPID; echo on`, "", "DEADLINE_EXCEEDED|HANDLER_ERROR"},
		{"stops its group", `kill -STOP 0; echo on`, "", "DEADLINE_EXCEEDED|HANDLER_ERROR"},
		{"kills its group", `kill -KILL 0; echo on`, "", "HANDLER_ERROR"},
		{"kills the warm bash", `kill -KILL $$; echo on`, "", "HANDLER_ERROR"},
		{"stops the warm bash", `kill -STOP $$; echo on`, "", "DEADLINE_EXCEEDED"},
		{"terminates the warm bash", `kill -TERM $$; kill -HUP $$; kill -INT $$; sleep 0.05; echo on`, "*", "*"},
		{"deletes its file", `rm app.sh; echo done`, "done\n", ""},
		{"a file size limit", `ulimit -f 0; echo done; echo x >file`, "", "HANDLER_ERROR"},
		{"a full disk", `echo x >/dev/full`, "", "HANDLER_ERROR"},
		{"no processes", `ulimit -u 0; ls; echo done`, "*", "*"},
		{"a storm of forks", `storm() { (($1)) || sleep 1000; storm $(($1 - 1)) & storm $(($1 - 1)) & wait; }; storm 6`, "", "DEADLINE_EXCEEDED"},
		{"a storm that it leaves", `storm() { (($1)) || sleep 1000; storm $(($1 - 1)) & storm $(($1 - 1)) & wait; }; storm 6 & sleep 0.2; echo done`, "done\n", ""},
		{"fills its memory limit", `ulimit -v 100000; x=x; while :; do x=$x$x; done`, "", "*"},
		{"recursion", `f() { f; }; ulimit -s 512; f`, "", "*"},
		{"a line that is no UTF-8", `printf '\377\n\n\0\n' >&2; echo done`, "done\n", ""},
		{"reads all input", `read -r line; cat; echo done`, "done\n", ""},
		{"redefines builtins", `echo() { :; }; read() { :; }; printf done`, "done", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := open(t).register("handle() { case $1 in bad) " + tc.body + " ;; *) echo ok ;; esac; }")
			for range 2 {
				timeout := time.Minute
				if strings.HasPrefix(tc.reason, "DEADLINE_EXCEEDED") || tc.reason == "*" {
					timeout = time.Second
				}
				res, err := f.invoke(context.Background(), timeout, "bad")
				if got := string(res.GetOutput()); tc.want != "*" && got != tc.want {
					t.Errorf("answer %.60q, want %q", got, tc.want)
				}
				if got := edge.Reason(err); tc.reason != "*" && !slices.Contains(strings.Split(tc.reason, "|"), got) {
					t.Errorf("%v, reason %q, want %q\n%s", err, got, tc.reason, edge.DebugText(err))
				}
				if got := f.call("good"); got != "ok\n" {
					t.Errorf("the next answer is %q", got)
				}
			}
		})
	}
}

// Variables that a call sets do not survive it; what the load set is there.
func TestCallsAreApart(t *testing.T) {
	f := open(t).register(`
set -euo pipefail
state=loaded
handle() { echo "$state ${mine-unset} $-"; state=called; mine=$1; cd /; set +e; }`)
	first := f.call("a")
	if second := f.call("b"); first != second || !strings.HasPrefix(first, "loaded unset ") || !strings.Contains(first, "e") || !strings.Contains(first, "u") {
		t.Errorf("%q, then %q", first, second)
	}
}

// Of a storm exactly one call is in the function at any time.
func TestStorm(t *testing.T) {
	f := open(t).register(`handle() { mkdir lock || exit 50; rmdir lock; echo ok; }`)
	var ok, refused, other atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 25 {
				_, err := f.invoke(context.Background(), 0, "")
				switch {
				case err == nil:
					ok.Add(1)
				case edge.Reason(err) == "INVOCATION_ACTIVE" && connect.CodeOf(err) == connect.CodeResourceExhausted:
					refused.Add(1)
				default:
					other.Add(1)
					t.Error(err, edge.DebugText(err))
				}
				if n := f.status().GetInFlight(); n != 0 && n != 1 {
					t.Errorf("%d in flight", n)
				}
			}
		})
	}
	wg.Wait()
	if ok.Load() == 0 || refused.Load() == 0 || ok.Load()+refused.Load() != 500 {
		t.Errorf("%d ok, %d refused, %d other", ok.Load(), refused.Load(), other.Load())
	}
}

func TestLoads(t *testing.T) {
	h := open(t)
	hasty := open(t, func(c *runtimeserver.Config) { c.LoadTimeout = 2 * time.Second })
	for _, tc := range []struct{ name, script, fatal string }{
		{"syntax", "handle() {\n  echo \"unclosed\n}\n", "app.sh: line 2: unexpected EOF"},
		{"crlf", "handle() {\r\n  echo hi\r\n}\r\n", "app.sh:1: the line ends with CR LF"},
		{"exits", "echo bye >&2; exit 3", "app.sh exited with status 3 while it was sourced: it must only define things\nbye"},
		{"errexit", "set -e\nfalse\nhandle() { :; }", "exited with status 1"},
		{"fails", "handle() { :; }\nfalse", "app.sh ended with status 1 while it was sourced"},
		{"hangs", "sleep 1000; handle() { :; }", "longer than 2s"},
	} {
		at := h
		if tc.name == "hangs" {
			at = hasty
		}
		f, res, err := at.tryRegister(tc.script)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if res.GetState() != executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_FAILED {
			t.Errorf("%s: %s", tc.name, res.GetState())
		}
		if got := f.status().GetFatalError(); !strings.Contains(got, tc.fatal) {
			t.Errorf("%s: %q", tc.name, got)
		}
		f.fails(0, "", connect.CodeFailedPrecondition, "REGISTRATION_FAILED")
	}
	if _, _, err := h.tryRegister("other() { :; }"); connect.CodeOf(err) != connect.CodeInvalidArgument || edge.Reason(err) != "HANDLER_INVALID" || !strings.Contains(err.Error(), "app.sh defines no function handle") {
		t.Errorf("no such function: %v", err)
	}
	if _, _, err := h.tryRegister("\xef\xbb\xbfhandle() { :; }"); err == nil || !strings.Contains(err.Error(), "app.sh:1: the file begins with a byte order mark") {
		t.Errorf("a byte order mark: %v", err)
	}
	f := h.register(`echo "$# $*"; yes | head -n 100000; handle() { declare -p list; }; declare -a list=(1 2)`)
	if got := f.call(""); !strings.Contains(got, `([0]="1" [1]="2")`) {
		t.Errorf("a global of the load is %q", got)
	}
	if !strings.Contains(f.log(), `"message":"0 "`) {
		t.Error("the file saw arguments that are not its own")
	}
}

func TestHandlerForms(t *testing.T) {
	h := open(t)
	_, dir := h.write("handle() { :; }")
	if err := errors.Join(
		os.Symlink("/etc/passwd", filepath.Join(dir, "link.sh")),
		os.Symlink("app.sh", filepath.Join(dir, "inner.sh")),
		os.Mkdir(filepath.Join(dir, "folder.sh"), 0o755),
		os.Mkdir(filepath.Join(dir, "lib"), 0o755),
		os.WriteFile(filepath.Join(dir, "lib", "a b.c.sh"), []byte("handle() { :; }"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	n := 0
	for handler, good := range map[string]bool{
		"app.handle": true, "inner.handle": true, "lib/a b.c.handle": true,
		"app": false, ".handle": false, "app.": false, "app.sh": false, "none.handle": false, "link.handle": false,
		"folder.handle": false, "../run-1/app.handle": false, "/etc/app.handle": false, "app.$(touch pwned)": false,
		"app.handle;touch pwned": false, "app.handle\nx": false, "a\x00pp.handle": false, "app.other": false,
		"app.printf": false, "app.if": false,
	} {
		n++
		_, err := h.client.RegisterFunction(context.Background(), &executorv1.RegisterFunctionRequest{
			RunUid: "form-" + strconv.Itoa(n), RegistrationAttempt: 1, WorkingDir: dir, Handler: handler, RegistrationDigest: digest,
		})
		if (err == nil) != good || err != nil && edge.Reason(err) != "HANDLER_INVALID" {
			t.Errorf("%q: %v", handler, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("a handler was evaluated")
	}
}

// A series of calls leaves memory, descriptors, goroutines and processes flat.
// The long form is the benchmark BenchmarkSoak.
func TestShortSoak(t *testing.T) {
	f := open(t).register(`handle() { [[ $1 != *0 ]] || sleep 1000 & echo "$1"; }`)
	soak(t, f, 50)
	before := measure(t)
	soak(t, f, 300)
	after := measure(t)
	if after.descriptors > before.descriptors+2 || after.goroutines > before.goroutines+2 || after.processes > before.processes+2 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func soak(t testing.TB, f *function, calls int) {
	t.Helper()
	for i := range calls {
		want := fmt.Sprintf("call %d", i)
		if got := f.call(want); got != want+"\n" {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}
