package cli

import (
	"fmt"
	"strings"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/hearth/internal/output"
)

func nodeView() output.View[*hearthv1.Node] {
	return output.View[*hearthv1.Node]{
		Columns: []string{"NAME", "UID", "RUNTIME", "STATE", "RUNS", "ADDRESS", "AGE"},
		Row: func(n *hearthv1.Node) []string {
			return []string{
				n.GetName(), n.GetUid(), n.GetRuntime(), nodeState(n),
				fmt.Sprintf("%d/%d", n.GetReserved(), n.GetCapacity()), n.GetAddress(), age(n.GetRegisterTime()),
			}
		},
		Name: (*hearthv1.Node).GetName,
	}
}

func nodeState(n *hearthv1.Node) string {
	return strings.TrimPrefix(n.GetState().String(), "NODE_STATE_")
}
