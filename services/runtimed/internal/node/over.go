package node

import "github.com/hearth-run/hearth/services/runtimed/internal/assignment"

// over says whether the Run itself has ended with this attempt, as far as this
// node can know.
func over(s assignment.State) bool {
	switch s.Outcome {
	case assignment.Finished:
		return true
	case assignment.Released:
		return s.Reason == "CANCELLED" || permanent[s.Reason]
	case assignment.Failed:
		return permanent[s.Reason]
	}
	return false
}

// permanent are the reasons after which no other attempt follows.
var permanent = map[string]bool{
	"COMPLETED": true, "HANDLER_INVALID": true, "SOURCE_INVALID": true, "RUNTIME_UNSUPPORTED": true,
	"IDLE_TIMEOUT": true, "LIFETIME_EXCEEDED": true, "CANCELLED": true,
}
