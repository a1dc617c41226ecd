package bash_test

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hearth-run/hearth/gen/executor/v1/executorv1connect"
	"github.com/hearth-run/hearth/internal/kit/dial"
	"github.com/hearth-run/hearth/internal/kit/serve"
)

var sizes4 = []int{100, 10 << 10, 200 << 10, 1 << 20}

// BenchmarkInvoke calls a warm function through InvokeFunction on a unix socket:
// go test ./bash -run - -bench Invoke.
func BenchmarkInvoke(b *testing.B) {
	h := open(b)
	log := slog.New(slog.DiscardHandler)
	listener, err := serve.New(serve.Config{Listen: "unix:" + filepath.Join(b.TempDir(), "s")}, log, h.rpc)
	if err != nil {
		b.Fatal(err)
	}
	if err := listener.Listen(); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- listener.Run(ctx) }()
	dialer := dial.New(nil)
	client, err := dialer.Client(listener.Address())
	if err != nil {
		b.Fatal(err)
	}
	h.client = executorv1connect.NewFunctionRuntimeClient(client)
	f := h.register(`handle() { printf '%s' "$1"; }`)
	for _, size := range sizes4 {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			input := strings.Repeat("x", size)
			for b.Loop() {
				f.call(input)
			}
		})
	}
	dialer.Close()
	stop()
	if err := <-done; err != nil {
		b.Error(err)
	}
}

// BenchmarkProcessPerCall is what a Runtime that starts a bash for each call pays
// at least: the start, the sourcing and the call, with the payload in a file.
func BenchmarkProcessPerCall(b *testing.B) {
	h := open(b)
	_, dir := h.write(`handle() { printf '%s' "$1"; }`)
	for _, size := range sizes4 {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			input := strings.Repeat("x", size)
			for b.Loop() {
				cmd := exec.Command("bash", "--norc", "--noprofile", "-c", `source ./app.sh; IFS= read -r -d '' payload; handle "$payload"`)
				cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
				if out, err := cmd.Output(); err != nil || len(out) != size {
					b.Fatal(len(out), err)
				}
			}
		})
	}
}
