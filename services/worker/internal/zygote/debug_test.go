package zygote_test

import (
	"context"
	"errors"
	"testing"

	"github.com/hearth-run/hearth/sandbox"
	"github.com/hearth-run/hearth/services/worker/internal/box"
	"github.com/hearth-run/hearth/services/worker/internal/zygote"
	"os"
)

func TestDebug(t *testing.T) {
	w := open(t, nil)
	for i := range 300 {
		id := "d"
		sockets, err := box.NewSockets(w.run, id)
		if err != nil {
			t.Fatal(err)
		}
		spec := w.spec(id, sockets.Files)
		spec.Stderr = os.Stderr
		c, err := w.driver.Create(context.Background(), spec)
		if err != nil {
			t.Fatal(errors.Join(err, sockets.Close()))
		}
		e := box.NewExecutor(sockets)
		err = w.root.Enter(context.Background(), c, zygote.Begin{})
		sockets.Started()
		if err == nil {
			err = e.AwaitReady(t.Context())
		}
		if err != nil {
			var exit sandbox.Exit
			exit, _ = c.Wait(t.Context())
			t.Fatal(i, err, exit)
		}
		e.Close()
		c.Destroy()
	}
}
