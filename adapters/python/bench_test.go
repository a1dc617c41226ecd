package python_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hearth-run/hearth/adapters/runtimeserver"
	"github.com/hearth-run/hearth/pyrunner/frame"
)

var sizes = []int{100, 10 << 10, 200 << 10, 1 << 20}

func payload(size int) []byte { return []byte(`"` + strings.Repeat("x", size-2) + `"`) }

// BenchmarkInvoke is one call of an echo through the driver.
func BenchmarkInvoke(b *testing.B) {
	w := newWorld(b, false)
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := w.load(b, "app.handle", "app.py", echo)
			if l.err != nil {
				b.Fatal(l.err)
			}
			in := payload(size)
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			for b.Loop() {
				if _, err := l.inst.Invoke(ctx, runtimeserver.Call{InvocationID: "i", Input: in, Deadline: time.Now().Add(time.Minute)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// floorLoop is a Python loop over a socket pair with nothing around it but the
// JSON: what no server can beat.
const floorLoop = `
import json, socket, struct
s = socket.socket(fileno=3)
s.setblocking(True)
buffer = bytearray(4 << 20); view = memoryview(buffer)
while True:
    n = s.recv_into(view)
    if not n: break
    size = int.from_bytes(buffer[:8], "big")
    while n < size + 16: n += s.recv_into(view[n:])
    out = json.dumps(json.loads(bytes(view[8:8 + size]))).encode()
    s.sendall(b"".join((struct.pack(">Q", len(out)), out, bytes(8))))
`

// BenchmarkFloor is the same exchange with no server around it.
func BenchmarkFloor(b *testing.B) {
	lang, err := language()
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			conn, end := floor(b, lang.Interpreter().Path)
			defer end()
			w, r := frame.NewWriter(conn), frame.NewReader(conn, 0)
			in := payload(size)
			for b.Loop() {
				if err := w.Write(in); err != nil {
					b.Fatal(err)
				}
				if _, err := r.Read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func floor(b *testing.B, interpreter string) (net.Conn, func()) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer theirs.Close()
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(interpreter, "-I", "-c", floorLoop)
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return conn, func() {
		if err := conn.Close(); err != nil {
			b.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkSuccessor is from the end of a call that ends its process to the
// answer of the next one. HEARTH_BENCH_IMPORTS names modules that the handler
// imports.
func BenchmarkSuccessor(b *testing.B) {
	l := newWorld(b, false).load(b, "app.handle", "app.py", imports()+"import os, time\ndef handle(event):\n    if event: time.sleep(1000)\n    return 1\n")
	if l.err != nil {
		b.Fatal(l.err)
	}
	var kill time.Duration
	for b.Loop() {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(3*time.Millisecond, cancel)
		from := time.Now()
		_, err := l.inst.Invoke(ctx, runtimeserver.Call{InvocationID: "i", Input: []byte("1"), Deadline: time.Now().Add(time.Minute)})
		kill += time.Since(from) - 3*time.Millisecond
		if err == nil {
			b.Fatal("it was not cancelled")
		}
		if _, err := l.inst.Invoke(context.Background(), runtimeserver.Call{InvocationID: "i", Input: []byte("0"), Deadline: time.Now().Add(time.Minute)}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(kill.Nanoseconds())/float64(b.N), "kill-ns/op")
}

// BenchmarkLoad is a registration: a process, the imports, the first fork.
func BenchmarkLoad(b *testing.B) {
	w := newWorld(b, false)
	for b.Loop() {
		l := w.load(b, "app.handle", "app.py", imports()+echo)
		if l.err != nil {
			b.Fatal(l.err)
		}
		if err := l.inst.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func imports() string {
	if names := os.Getenv("HEARTH_BENCH_IMPORTS"); names != "" {
		return "import " + names + "\n"
	}
	return ""
}
