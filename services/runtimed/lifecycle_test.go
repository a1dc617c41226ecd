package runtimed_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	executorv1 "github.com/hearth-run/hearth/gen/executor/v1"
	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/internal/kit/edge"
	"github.com/hearth-run/hearth/internal/kit/hop"
)

// story runs a test with a house in synthetic time.
func story(t *testing.T, tell func(t *testing.T, h *house)) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t)
		h.start()
		tell(t, h)
	})
}

// Idle time is counted by the Runtime Server's own activity, whatever its clock
// says, and an invocation starts it anew.
func TestIdleTimeout(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		spec := function()
		spec.GetFunction().IdleTimeout = durationpb.New(time.Minute)
		h.control.assign("run-1", 1, spec, 0)
		h.hear("run-1#1 ready")
		time.Sleep(50 * time.Second)
		if _, err := h.call(t.Context(), "run-1", h.fence(1), ""); err != nil {
			t.Fatal(err)
		}
		active := time.Now()
		h.hear("run-1#1 failed IDLE_TIMEOUT")
		if idle := time.Since(active); idle < time.Minute || idle > time.Minute+3*h.cfg.StatusInterval {
			t.Errorf("idle for %v", idle)
		}
		if calls := h.runtime.asked(); !slices.Contains(calls, "unregister run-1 cancel=false") {
			t.Errorf("asked %q", calls)
		}
		synctest.Wait()
		if _, err := h.call(t.Context(), "run-1", hop.Fence{}, ""); edge.Reason(err) != "RUN_ENDED" {
			t.Errorf("after the end: %v", err)
		}
		h.close()
	})
}

// The Run's lifetime ends the invocation that runs, and the Run.
func TestLifetime(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.runtime.invoke = func(ctx context.Context, req *executorv1.InvokeFunctionRequest) (*executorv1.InvokeFunctionResponse, error) {
			timer := time.NewTimer(time.Duration(req.GetTimeoutMillis()) * time.Millisecond)
			defer timer.Stop()
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-timer.C:
				return nil, edge.New(connect.CodeDeadlineExceeded, "DEADLINE_EXCEEDED", fmt.Sprintf("after %dms", req.GetTimeoutMillis()), nil)
			}
		}
		h.control.assign("run-1", 1, function(), 20*time.Second)
		h.hear("run-1#1 ready")
		time.Sleep(15 * time.Second)
		began := time.Now()
		_, err := h.call(t.Context(), "run-1", h.fence(1), "")
		if time.Since(began) > 5*time.Second || err == nil {
			t.Errorf("an invocation of %v outlived its Run: %v", time.Since(began), err)
		}
		h.hear("run-1#1 failed LIFETIME_EXCEEDED")
		h.close()
	})
}

// An uncertain RegisterFunction is repeated with the same attempt and digest.
func TestUncertainRegistration(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		var digests []string
		tries := 0
		h.runtime.register = func(ctx context.Context, req *executorv1.RegisterFunctionRequest) error {
			digests = append(digests, fmt.Sprint(req.GetRegistrationAttempt(), req.GetRegistrationDigest()))
			switch tries++; tries {
			case 1, 2:
				return edge.New(connect.CodeUnavailable, "UNAVAILABLE", "not yet", nil)
			case 3:
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		h.control.assign("run-1", 3, function(), 0)
		h.hear("run-1#3 ready")
		slices.Sort(digests)
		if len(digests) != 4 || len(slices.Compact(digests)) != 1 {
			t.Errorf("registered as %q", digests)
		}
		h.close()
	})
}

// What RegisterFunction and the source can come to, and what is reported.
func TestFailures(t *testing.T) {
	refuse := func(code connect.Code, reason string) func(*house, *hearthv1.RunSpec) {
		return func(h *house, _ *hearthv1.RunSpec) {
			h.runtime.set(func(f *runtimeFake) {
				f.register = func(context.Context, *executorv1.RegisterFunctionRequest) error {
					return edge.New(code, reason, "because", nil)
				}
			})
		}
	}
	for want, change := range map[string]func(*house, *hearthv1.RunSpec){
		"HANDLER_INVALID":     refuse(connect.CodeInvalidArgument, "HANDLER_INVALID"),
		"RUNTIME_UNSUPPORTED": refuse(connect.CodeUnimplemented, "UNIMPLEMENTED"),
		"REGISTRATION_LOST":   refuse(connect.CodeAlreadyExists, "REGISTRATION_DIGEST_MISMATCH"),
		"RUNTIME_UNAVAILABLE": refuse(connect.CodeUnavailable, "RUNTIME_UNAVAILABLE"),
		"INITIALIZATION_FAILED": func(h *house, _ *hearthv1.RunSpec) {
			h.runtime.register = func(_ context.Context, req *executorv1.RegisterFunctionRequest) error {
				h.runtime.set(func(f *runtimeFake) {
					f.registrations[req.GetRunUid()] = &registrationFake{
						id: "reg_x", digest: req.GetRegistrationDigest(), attempt: req.GetRegistrationAttempt(), fatal: "boom",
						state: executorv1.FunctionRegistrationState_FUNCTION_REGISTRATION_STATE_FAILED,
					}
				})
				return nil
			}
		},
		"SOURCE_INVALID": func(_ *house, spec *hearthv1.RunSpec) {
			spec.GetSource().GetInline().Files[0].Path = "../escape.py"
		},
	} {
		t.Run(want, func(t *testing.T) {
			story(t, func(t *testing.T, h *house) {
				spec := function()
				change(h, spec)
				h.control.assign("run-1", 1, spec, 0)
				h.hear("run-1#1 failed " + want)
				// Whatever could not be undone is swept once it can.
				h.runtime.set(func(f *runtimeFake) { f.register = nil })
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if left := h.folders(); len(left) > 0 {
					t.Errorf("left in the workspace: %v", left)
				}
				h.close()
			})
		})
	}
}

// The Runtime Server was restarted and knows nothing: the next poll notices, and
// an invocation notices before that.
func TestRegistrationLost(t *testing.T) {
	for _, called := range []bool{false, true} {
		t.Run(fmt.Sprint("called=", called), func(t *testing.T) {
			story(t, func(t *testing.T, h *house) {
				h.control.assign("run-1", 1, function(), 0)
				h.hear("run-1#1 ready")
				synctest.Wait()
				h.runtime.set(func(f *runtimeFake) { clear(f.registrations) })
				lost := time.Now()
				if called {
					if _, err := h.call(t.Context(), "run-1", h.fence(1), ""); connect.CodeOf(err) != connect.CodeNotFound {
						t.Errorf("the verdict did not pass: %v", err)
					}
				}
				h.hear("run-1#1 failed REGISTRATION_LOST")
				if took := time.Since(lost); called && took > 100*time.Millisecond || took > 2*h.cfg.StatusInterval {
					t.Errorf("noticed after %v", took)
				}
				h.close()
			})
		})
	}
}

// The Runtime Server is unreachable for longer than the node's patience; what it
// still holds is undone once it is back.
func TestRuntimeServerUnreachable(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, function(), 0)
		h.hear("run-1#1 ready")
		h.runtime.set(func(f *runtimeFake) { f.down = true })
		_, err := h.call(t.Context(), "run-1", h.fence(1), "")
		if connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("while it is down: %v", err)
		}
		h.hear("run-1#1 failed RUNTIME_UNAVAILABLE")
		h.await("the handshake's news", func() bool { return !h.control.node.GetSupportsFunctions() })
		h.runtime.set(func(f *runtimeFake) { f.down = false })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		h.close()
	})
}

// A short absence changes nothing.
func TestRuntimeServerBlinks(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, function(), 0)
		h.hear("run-1#1 ready")
		h.runtime.set(func(f *runtimeFake) { f.down = true })
		time.Sleep(h.cfg.Patience / 2)
		h.runtime.set(func(f *runtimeFake) { f.down = false })
		time.Sleep(2 * h.cfg.Patience)
		if _, err := h.call(t.Context(), "run-1", h.fence(1), ""); err != nil {
			t.Error(err)
		}
		h.close()
	})
}

// A Runtime Server that loses FunctionRuntime fails its functions for good.
func TestServiceLost(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, function(), 0)
		h.hear("run-1#1 ready")
		h.runtime.set(func(f *runtimeFake) { f.unfitted = true; clear(f.registrations) })
		h.hear("run-1#1 failed RUNTIME_UNSUPPORTED")
		time.Sleep(2 * h.cfg.HealthInterval)
		h.control.mu.Lock()
		if h.control.node.GetSupportsFunctions() || !h.control.node.GetSupportsTasks() {
			t.Errorf("advertised %v", h.control.node)
		}
		h.control.mu.Unlock()
		h.close()
	})
}

// A later attempt waits until the earlier one is gone; a Run that a snapshot does
// not name is let go without a word.
func TestSuperseded(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, function(), 0)
		h.hear("run-1#1 ready")
		h.control.assign("run-1", 2, function(), 0)
		h.hear("run-1#2 ready")
		want := []string{"register run-1#1", "unregister run-1 cancel=true", "register run-1#2"}
		if got := h.runtime.asked(); !slices.Equal(got, want) {
			t.Errorf("asked %q, want %q", got, want)
		}
		h.control.edit(func() { delete(h.control.runs, "run-1") })
		time.Sleep(time.Second)
		if slices.ContainsFunc(h.control.reports, func(r string) bool { return strings.Contains(r, "released") }) {
			t.Errorf("reports %q", h.control.reports)
		}
		h.close()
	})
}

// An attempt that is called off before it has taken its predecessor's place, while the
// Runtime Server is away, leaves nothing of either behind.
func TestCalledOffWhileSuperseding(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, function(), 0)
		h.hear("run-1#1 ready")
		h.runtime.set(func(f *runtimeFake) { f.down = true })
		h.control.assign("run-1", 2, function(), 0)
		time.Sleep(h.cfg.ReleaseTimeout + time.Second) // now the second tries to end the first
		h.control.release("run-1", hearthv1.RunReason_RUN_REASON_CANCELLED)
		h.hear("run-1#2 released")
		h.runtime.set(func(f *runtimeFake) { f.down = false })
		time.Sleep(30 * time.Second)
		synctest.Wait()
		h.runtime.set(func(f *runtimeFake) {
			if len(f.registrations) > 0 {
				t.Errorf("left on the Runtime Server: %v", f.registrations)
			}
		})
		h.close()
	})
}

// A release for what the node does not hold is answered all the same.
func TestReleaseOfNothing(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.edit(func() {
			h.control.runs["run-9"] = &hearthv1.Assignment{
				RunUid: "run-9", Attempt: 4, NodeUid: h.control.node.GetUid(), Action: hearthv1.AssignmentAction_ASSIGNMENT_ACTION_RELEASE,
			}
		})
		h.hear("run-9#4 released")
		h.close()
	})
}

// The stop of a node gives its Runs back, with the control plane and without it,
// in bounded time.
func TestDrain(t *testing.T) {
	for _, down := range []bool{false, true} {
		t.Run(fmt.Sprint("down=", down), func(t *testing.T) {
			story(t, func(t *testing.T, h *house) {
				for i := range 20 {
					h.control.assign(fmt.Sprintf("run-%d", i), 1, function(), 0)
				}
				for i := range 20 {
					h.hear(fmt.Sprintf("run-%d#1 ready", i))
				}
				h.control.edit(func() { h.control.down = down })
				began := time.Now()
				h.close()
				if took := time.Since(began); took > h.cfg.DrainTimeout+time.Second {
					t.Errorf("took %v", took)
				}
				released := 0
				for _, r := range h.control.reports {
					if strings.HasSuffix(r, "released") {
						released++
					}
				}
				if !down && (released != 20 || !h.control.drained) {
					t.Errorf("%d released, drained %v", released, h.control.drained)
				}
			})
		})
	}
}

// That a load has begun is said only where it takes long.
func TestStartIsSaidOfSlowLoads(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		h.control.assign("run-1", 1, function(), 0)
		h.hear("run-1#1 ready")
		h.runtime.set(func(f *runtimeFake) {
			f.register = func(context.Context, *executorv1.RegisterFunctionRequest) error {
				time.Sleep(time.Second)
				return nil
			}
		})
		h.control.assign("run-2", 1, function(), 0)
		h.hear("run-2#1 ready")
		h.control.edit(func() {
			if want := []string{"run-1#1 ready", "run-2#1 started", "run-2#1 ready"}; !slices.Equal(h.control.reports, want) {
				t.Errorf("%q, want %q", h.control.reports, want)
			}
		})
		h.close()
	})
}

// Many Runs together stay within the bound on polls.
func TestManyRunsPollWithinBound(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		const runs = 300
		for i := range runs {
			h.control.edit(func() {
				uid := fmt.Sprintf("run-%d", i)
				h.control.runs[uid] = &hearthv1.Assignment{
					RunUid: uid, Attempt: 1, NodeUid: h.control.node.GetUid(),
					Action: hearthv1.AssignmentAction_ASSIGNMENT_ACTION_SERVE,
					Spec:   &hearthv1.RunSpec{Mode: function().GetMode()},
				}
				if i < runs-1 {
					// One event for all of them.
					h.control.version--
				}
			})
		}
		h.await("all ready", func() bool {
			n := 0
			for _, r := range h.control.reports {
				if strings.HasSuffix(r, "ready") {
					n++
				}
			}
			return n == runs
		})
		time.Sleep(20 * time.Second)
		h.runtime.set(func(f *runtimeFake) { f.polls = 0 })
		time.Sleep(60 * time.Second)
		h.runtime.set(func(f *runtimeFake) {
			if f.polls < 60*20 || f.polls > 60*32 {
				t.Errorf("%d polls in 60 s", f.polls)
			}
		})
		h.close()
	})
}

// Two processes cannot share a ledger.
func TestSecondProcess(t *testing.T) {
	story(t, func(t *testing.T, h *house) {
		second := open(t)
		second.cfg.Data = h.cfg.Data
		if err := second.try(); err == nil || !strings.Contains(err.Error(), filepath.Base(h.cfg.Data)) {
			t.Errorf("a second process: %v", err)
		}
		h.close()
	})
}
