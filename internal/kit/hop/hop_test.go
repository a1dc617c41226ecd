package hop_test

import (
	"testing"

	"connectrpc.com/connect/v2"

	"github.com/hearth-run/hearth/internal/kit/hop"
)

func TestFence(t *testing.T) {
	for _, f := range []hop.Fence{{}, {Attempt: 1, NodeUID: "n"}, {Attempt: 2147483647}, {NodeUID: "n"}} {
		var h connect.Header
		f.Write(&h)
		if got, err := hop.Read(&h); err != nil || got != f {
			t.Errorf("%+v came back as %+v, %v", f, got, err)
		}
	}
	for _, bad := range []string{"0", "-1", "x", "2147483648", "1 "} {
		var h connect.Header
		h.Set(hop.Attempt, bad)
		if got, err := hop.Read(&h); err == nil {
			t.Errorf("attempt %q was read as %+v", bad, got)
		}
	}
}
