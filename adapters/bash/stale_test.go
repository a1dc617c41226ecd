package bash

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hearth-run/hearth/adapters/internal/process"
	"github.com/hearth-run/hearth/adapters/runtimeserver"
)

type noLog struct{}

func (noLog) Writer(string, runtimeserver.Stream) io.WriteCloser { return nopCloser{io.Discard} }
func (noLog) Entry(_, _, _ string)                               {}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// A line for a call that was killed before it read it runs nothing.
func TestStaleLine(t *testing.T) {
	keeper, err := process.Open(process.Config{Dir: t.TempDir(), Name: "bash"})
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	group, err := keeper.Group("stale")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "app.sh"), []byte(`handle() { echo "$HEARTH_INVOCATION_ID $1"; }`), 0o644); err != nil {
		t.Fatal(err)
	}
	language, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := language.Load(context.Background(), runtimeserver.Function{Dir: dir, Handler: "app.handle", Processes: group, Temp: t.TempDir(), Logs: noLog{}})
	if err != nil {
		t.Fatal(err)
	}
	i := loaded.(*instance)
	for n := range 3 {
		fmt.Fprintln(i.warm.channels.control.write, "0 stale")
		fmt.Fprintln(i.warm.channels.control.write, "on")
		want := fmt.Sprintf("fresh %d\n", n)
		res, err := i.Invoke(context.Background(), runtimeserver.Call{InvocationID: "fresh", Input: fmt.Append(nil, n)})
		if err != nil || string(res.Output) != want {
			t.Errorf("got %q %v, want %q", res.Output, err, want)
		}
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
}
