package bash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
)

// A cancel at any moment costs its own call only: each answer belongs to its
// question.
func TestCancelAtAnyMoment(t *testing.T) {
	walls(t, func(t *testing.T, h *house) {
		f := h.register(`handle() { echo "$1 $HEARTH_INVOCATION_ID"; }`)
		canceled := 0
		for i := range 80 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(6_000))*time.Microsecond)
			want := fmt.Sprint("call ", i)
			res, err := f.invoke(ctx, 0, want)
			cancel()
			switch code := connect.CodeOf(err); {
			case err == nil:
				if got := string(res.GetOutput()); got != want+" "+res.GetInvocationId()+"\n" {
					t.Fatalf("asked %q, got %q", want, got)
				}
			case code == connect.CodeDeadlineExceeded || code == connect.CodeCanceled:
				canceled++
			default:
				t.Fatal(err)
			}
		}
		if canceled == 0 || canceled == 80 {
			t.Logf("%d of 80 were canceled: the moments are badly chosen for this machine", canceled)
		}
		want := "after all"
		if got := f.call(want); got[:len(want)] != want {
			t.Errorf("got %q", got)
		}
	})
}
