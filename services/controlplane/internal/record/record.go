// Package record owns what the control plane keeps of a Run and of a node, and how
// both look on the wire. A record is never changed once it was made: a change is a
// new one.
package record

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/controlplane/internal/lifecycle"
	"github.com/hearth-run/hearth/services/controlplane/internal/placement"
)

// Run is a Run as it stands in memory, without the contents of its source and
// without a task's output streams, which only the store holds.
type Run struct {
	UID       string
	Namespace string
	Name      string
	Labels    map[string]string `json:",omitempty"`
	// Seq orders Runs by creation.
	Seq int64
	// Version is the store's at the latest change.
	Version int64
	State   lifecycle.State
	// Outputs are a task's.
	Outputs map[string]string `json:",omitempty"`

	// Spec is without contents; stored apart, once. Shared by all versions.
	Spec *hearthv1.RunSpec `json:"-"`
	// Policy is what Spec says to the machine.
	Policy lifecycle.Policy `json:"-"`
}

// Key orders Runs as lists show them: a NUL cannot be in a name.
func Key(namespace, name string) string { return namespace + "\x00" + name }

// Key is the Run's.
func (r *Run) Key() string { return Key(r.Namespace, r.Name) }

// Group is what the Run needs of a node.
func (r *Run) Group() placement.Group {
	return placement.Group{Runtime: r.Spec.GetRuntime(), Task: r.Policy.Task}
}

// Light returns the spec without what its source contains; the original stays as it is.
func Light(spec *hearthv1.RunSpec) *hearthv1.RunSpec {
	light := proto.CloneOf(spec)
	for _, f := range light.GetSource().GetInline().GetFiles() {
		f.Data = nil
	}
	return light
}

// PolicyOf reads the machine's policy from a spec.
func PolicyOf(spec *hearthv1.RunSpec) lifecycle.Policy {
	retry := spec.GetRetryPolicy()
	p := lifecycle.Policy{
		Task:           spec.GetTask() != nil,
		MaxAttempts:    int(retry.GetMaxAttempts()),
		InitialBackoff: retry.GetInitialBackoff().AsDuration(),
		MaxBackoff:     retry.GetMaxBackoff().AsDuration(),
		Timeout:        spec.GetTimeout().AsDuration(),
	}
	for _, r := range retry.GetRetryableReasons() {
		p.Retryable = append(p.Retryable, lifecycle.Reason(r))
	}
	if spec.GetTtlAfterFinish() != nil {
		ttl := spec.GetTtlAfterFinish().AsDuration()
		p.TTL = &ttl
	}
	return p
}

// Proto is the Run on the wire. The message shares nothing with the record.
func (r *Run) Proto() *hearthv1.Run {
	s := r.State
	spec := proto.CloneOf(r.Spec)
	spec.CancelRequested = s.CancelRequested
	out := &hearthv1.Run{
		Uid: r.UID, Namespace: r.Namespace, Name: r.Name, Labels: clone(r.Labels), Spec: spec,
		ResourceVersion: r.Version, CreateTime: stamp(s.CreatedAt), DeleteTime: stamp(s.DeletedAt),
		Status: &hearthv1.RunStatus{
			Phase: hearthv1.RunPhase(s.Phase()), Reason: hearthv1.RunReason(s.Reason), Message: s.Message,
			Attempt: int32(s.Attempt), NodeUid: s.Node, Endpoint: s.Endpoint,
			ScheduleTime: stamp(s.PlacedAt), StartTime: stamp(s.StartedAt), ReadyTime: stamp(s.ReadyAt),
			FinishTime: stamp(s.FinishedAt), RetryTime: stamp(s.RetryAt),
			Conditions: []*hearthv1.RunCondition{
				condition("Scheduled", s.ScheduledCondition), condition("Ready", s.ReadyCondition),
			},
			SourceIdentity: s.Identity,
		},
	}
	if s.ExitCode != nil {
		out.Status.Outputs = clone(r.Outputs)
		out.Status.ExitCode = proto.Int32(int32(*s.ExitCode))
	}
	return out
}

func condition(kind string, c lifecycle.Condition) *hearthv1.RunCondition {
	return &hearthv1.RunCondition{
		Type: kind, Status: c.Status, Reason: hearthv1.RunReason(c.Reason), Message: c.Message, TransitionTime: stamp(c.At),
	}
}

// Assignment is what the Run's node is told, without the source's contents.
func (r *Run) Assignment(now time.Time) *hearthv1.Assignment {
	a := &hearthv1.Assignment{
		RunUid: r.UID, Attempt: int32(r.State.Attempt), NodeUid: r.State.Node, Namespace: r.Namespace, Name: r.Name,
		Action: hearthv1.AssignmentAction_ASSIGNMENT_ACTION_SERVE,
	}
	if r.State.Stage == lifecycle.Releasing {
		a.Action = hearthv1.AssignmentAction_ASSIGNMENT_ACTION_RELEASE
		a.Reason = hearthv1.RunReason(r.State.NextReason)
		return a
	}
	a.Spec, a.SourceIdentity = proto.CloneOf(r.Spec), r.State.Identity
	if end := r.State.LifetimeEnd(r.Policy); !end.IsZero() {
		a.LifetimeLeft = durationpb.New(max(end.Sub(now), 0))
	}
	return a
}

// Route is where the Run is served, as gateways are told.
func (r *Run) Route() *hearthv1.Route {
	out := &hearthv1.Route{
		Namespace: r.Namespace, Name: r.Name, RunUid: r.UID, Attempt: int32(r.State.Attempt), NodeUid: r.State.Node,
		Phase: hearthv1.RunPhase(r.State.Phase()), Reason: hearthv1.RunReason(r.State.Reason), Function: !r.Policy.Task,
		LogAddress: r.State.LogEndpoint,
	}
	if r.State.Stage == lifecycle.Ready {
		out.Address = r.State.Endpoint
	}
	return out
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func clone(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// Bearing is what of a Run a gateway can see change.
type Bearing struct {
	Attempt  int
	Node     string
	Endpoint string
	Phase    lifecycle.Phase
	Reason   lifecycle.Reason
}

// Bearing is the Run's.
func (r *Run) Bearing() Bearing {
	s := r.State
	return Bearing{Attempt: s.Attempt, Node: s.Node, Endpoint: s.Endpoint, Phase: s.Phase(), Reason: s.Reason}
}
