package cli

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/hearth/internal/output"
)

func runView() output.View[*hearthv1.Run] {
	return output.View[*hearthv1.Run]{
		Columns: []string{"NAME", "RUNTIME", "MODE", "PHASE", "REASON", "ATTEMPT", "AGE"},
		Row: func(r *hearthv1.Run) []string {
			return []string{
				r.GetName(), r.GetSpec().GetRuntime(), mode(r.GetSpec()), phase(r), reason(r),
				fmt.Sprint(r.GetStatus().GetAttempt()), age(r.GetCreateTime()),
			}
		},
		Name: (*hearthv1.Run).GetName,
	}
}

func mode(spec *hearthv1.RunSpec) string {
	if spec.GetTask() != nil {
		return "task"
	}
	return "function"
}

func phase(r *hearthv1.Run) string {
	return strings.TrimPrefix(r.GetStatus().GetPhase().String(), "RUN_PHASE_")
}

// reason is "-" where there is nothing to say yet.
func reason(r *hearthv1.Run) string {
	if r.GetStatus().GetReason() == hearthv1.RunReason_RUN_REASON_UNSPECIFIED {
		return "-"
	}
	return strings.TrimPrefix(r.GetStatus().GetReason().String(), "RUN_REASON_")
}

// ended says whether a phase is terminal.
func ended(p hearthv1.RunPhase) bool { return p >= hearthv1.RunPhase_RUN_PHASE_SUCCEEDED }

func age(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	since := time.Since(t.AsTime())
	switch {
	case since < time.Minute:
		return since.Round(time.Second).String()
	case since < 2*time.Hour:
		return since.Round(time.Minute).String()[:len(since.Round(time.Minute).String())-2]
	case since < 48*time.Hour:
		return fmt.Sprintf("%dh", int(since.Hours()))
	default:
		return fmt.Sprintf("%dd", int(since.Hours()/24))
	}
}

// story is a Run's state as one line of progress.
func story(r *hearthv1.Run) string {
	text := r.GetName() + ": " + phase(r)
	if reason := reason(r); reason != "-" {
		text += ", " + reason
	}
	if msg := r.GetStatus().GetMessage(); msg != "" {
		text += ": " + msg
	}
	return text
}
