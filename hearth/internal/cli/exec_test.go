package cli

import (
	"testing"

	"github.com/hearth-run/hearth/gen/serverless"
)

func TestBytes(t *testing.T) {
	for text, want := range map[string]bytesFlag{"512Mi": 512 << 20, "2G": 2e9, "7": 7, "1Ki": 1024} {
		var got bytesFlag
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Mi", "-1", "1.5Gi", "9999999999Ti", "12x"} {
		var got bytesFlag
		if got.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestExplainStart(t *testing.T) {
	for start, want := range map[serverless.ContainerStart]string{
		serverless.ContainerStart_CONTAINER_START_COLD:       "ran on worker w in container c, started cold, with 64Mi of memory",
		serverless.ContainerStart_CONTAINER_START_CHECKPOINT: "ran on worker w in container c, started from zygote, with 64Mi of memory",
		serverless.ContainerStart_CONTAINER_START_POOLED:     "ran on worker w in container c, which stood ready, started from zygote, with 64Mi of memory",
		serverless.ContainerStart_CONTAINER_START_SESSION:    "ran on worker w in container c, the session's own, with 64Mi of memory",
		serverless.ContainerStart_CONTAINER_START_UNKNOWN:    "ran on worker w in container c, and its worker does not say how it started, with 64Mi of memory",
	} {
		last := &serverless.ClientExecutionResponse{
			WorkerId: "w", ContainerId: "c", CheckpointId: "zygote", Start: start,
			Budgets: []*serverless.ResourceBudget{{Kind: serverless.ResourceKind_RESOURCE_KIND_MEMORY, Alloc: 64 << 20}},
		}
		if got := explainStart(last, nil); got != want {
			t.Errorf("%v: %s", start, got)
		}
	}
	steps := []*serverless.ExecutionStep{{Name: "place", Nanos: 1_000}, {Name: "call", Nanos: 2_000_000}}
	if got, want := explainSteps(steps), "\n  place            1µs\n  call             2ms\n  in all       2.001ms"; got != want {
		t.Errorf("steps: %q", got)
	}
}
