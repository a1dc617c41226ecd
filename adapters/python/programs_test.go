package python_test

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestLibrariesThatStartThingsWork(t *testing.T) {
	l := newWorld(t, false).app(t, `
import asyncio, concurrent.futures, multiprocessing, subprocess, tempfile, threading
def square(n): return n * n
async def later(n):
    await asyncio.sleep(0)
    return n
def handle(event):
    if event in ("fork", "spawn"):
        with multiprocessing.get_context(event).Pool(2) as pool: return pool.map(square, range(4))
    if event == "left open":
        return multiprocessing.get_context("fork").Pool(2).map(square, range(4))
    if event == "threads":
        with concurrent.futures.ThreadPoolExecutor(4) as pool: return list(pool.map(square, range(4)))
    if event == "asyncio":
        async def all(): return await asyncio.gather(*map(later, (0, 1, 4, 9)))
        return asyncio.run(all())
    if event == "subprocess":
        return [int(n) for n in subprocess.run(["sh", "-c", "echo 0 1 4 9"], capture_output=True).stdout.split()]
    if event == "input":
        try: input()
        except EOFError: return [0, 1, 4, 9]
`)
	for range 2 {
		for _, event := range []string{"fork", "spawn", "left open", "threads", "asyncio", "subprocess", "input"} {
			l.calls = 0
			l.want(`"`+event+`"`, `[0,1,4,9]`)
		}
	}
}

func TestThreadsLogEvenAfterTheirCall(t *testing.T) {
	l := newWorld(t, false).app(t, `
import threading
go, done = threading.Event(), threading.Event()
def late(context):
    go.wait(); context.logger.info("late"); done.set()
def handle(event, context):
    if event == "start": threading.Thread(target=late, args=(context,)).start()
    if event == "go": go.set(); done.wait()
`)
	l.want(`"start"`, `null`)
	l.want(`"go"`, `null`)
	if got := l.logs.text("call-2/logger") + l.logs.text("call-1/logger"); got != "" {
		t.Errorf("an entry of call 1 is in the log of a call: %q", got)
	}
	mustContain(t, l.logs.text("/logger"), "info late\n")
}

// FuzzResolve: no handler string leads out of the working folder or to anything
// but a Python file in it.
func FuzzResolve(f *testing.F) {
	dir := f.TempDir()
	lang, err := language()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"app.handle", "a.b.c", "../x.y", "os.system", "a..b", "a/b.c", "\x00.f", "app.handle\n", strings.Repeat("a.", 300)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, handler string) {
		if err := lang.Resolve(dir, handler); err == nil {
			t.Fatalf("%q resolves in an empty folder", handler)
		}
		if err := lang.Resolve(filepath.Join(dir, "absent"), handler); err == nil {
			t.Fatalf("%q resolves in no folder", handler)
		}
	})
}
