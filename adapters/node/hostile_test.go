package node_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

// hostile is what a handler does, and what its caller is told: an answer, or a part
// of the failure's text; "*" is either.
var hostile = map[string]struct{ code, answer, failure string }{
	"exits":                 {"process.exit(3)", "", "status 3"},
	"aborts":                {"process.abort()", "", "aborted"},
	"kills itself":          {"process.kill(process.pid, 'SIGKILL'); while (true);", "", "killed"},
	"throws":                {"throw new TypeError('wrong')", "", "wrong"},
	"throws later":          {"setTimeout(() => { throw new Error('late'); }, 1); await new Promise(() => setTimeout(() => {}, 60000));", "", "status 1"},
	"throws nothing":        {"throw undefined", "", "undefined"},
	"rejects":               {"return Promise.reject(new Error('rejected'))", "", "rejected"},
	"closes fd 1":           {"fs.closeSync(1); return 'done'", `"done"`, ""},
	"closes fd 0 to 2":      {"for (const fd of [0, 1, 2]) fs.closeSync(fd); return 'done'", `"done"`, ""},
	"writes to fd 4 to 20":  {"for (let fd = 4; fd < 21; fd++) try { fs.writeSync(fd, 'garbage'); } catch {} return 'done'", "*", "*"},
	"writes to the channel": {"fs.writeSync(3, 'garbage'.repeat(100)); return 'done'", "", "control socket"},
	"closes the channel":    {"fs.closeSync(3); return 'done'", "", "*"},
	"replaces stdout":       {"process.stdout.write = () => { throw new Error('no'); }; return 'done'", `"done"`, ""},
	"floods stdout":         {"process.stdout.write(Buffer.alloc(4 << 20, 255)); fs.writeSync(1, Buffer.alloc(1 << 16)); return 'done'", `"done"`, ""},
	"one line on stderr":    {"const mib = 'x'.repeat(1 << 20); for (let i = 0; i < 100; i++) process.stderr.write(mib); return 'done'", `"done"`, ""},
	"cwd and umask":         {"process.chdir('/'); process.umask(0o777); process.env.PATH = ''; return 'done'", `"done"`, ""},
	"takes signals":         {"for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, () => {}); return 'done'", `"done"`, ""},
	"forks":                 {"for (let i = 0; i < 10; i++) spawn('sleep', ['1000'], { detached: true, stdio: 'inherit' }); return 'done'", `"done"`, ""},
	"threads":               {"new Worker('while (true);', { eval: true }); return 'done'", `"done"`, ""},
	"timers":                {"setInterval(() => process.stdout.write('tick'), 1); return 'done'", `"done"`, ""},
	"deletes its file":      {"fs.rmSync(__filename, { force: true }); return 'done'", `"done"`, ""},
	"a full disk":           {"fs.writeFileSync('/dev/full', 'x'); return 'done'", "", "ENOSPC"},
	"breaks JSON":           {"JSON.stringify = JSON.parse = () => { throw new Error('no JSON'); }; return 'done'", `"done"`, ""},
	"a loop in the answer":  {"const a = []; a.push(a); return a", "", "circular"},
	"a bigint":              {"return 1n", "", "BigInt"},
	"not a number":          {"return NaN", "", "JSON cannot carry NaN"},
	"a lying answer":        {"return { toJSON() { throw new RangeError('lied'); } }", "", "lied"},
	"outputs that are none": {"context.outputs = null; return 'done'", "*", "*"},
}

// Each of these gets a clear error or its answer, and the next call works.
func TestHostileHandlers(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			i, _, err := load(t, "app.f", map[string]string{"app.js": `
				const fs = require('fs'), { spawn } = require('child_process'), { Worker } = require('worker_threads');
				exports.f = async (event, context) => {
					if (event !== 'bad') return 'good';
					` + c.code + `
				};`})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			answer, err := call(ctx, i, "bad", `"bad"`)
			if c.failure != "*" {
				failed, isFailure := errors.AsType[*runtimeserver.HandlerError](err)
				switch {
				case c.failure == "" && (err != nil || answer != c.answer):
					t.Errorf("answer %.60q, %v, want %s", answer, err, c.answer)
				case c.failure != "" && (!isFailure || !strings.Contains(failed.Message+failed.Trace, c.failure)):
					t.Errorf("answer %.60q, %v, want %q", answer, err, c.failure)
				}
			} else if err == nil && c.answer == "" {
				t.Errorf("answered %.60q", answer)
			}
			if name == "deletes its file" {
				return // its code is loaded; a fresh load has nothing to load
			}
			if answer, err := call(ctx, i, "good", `"next"`); answer != `"good"` || err != nil {
				t.Errorf("the next call: %.60q %v", answer, err)
			}
		})
	}
}
