package record

import (
	"time"

	hearthv1 "github.com/hearth-run/hearth/gen/hearth/v1"
	"github.com/hearth-run/hearth/services/controlplane/internal/nodes"
	"github.com/hearth-run/hearth/services/controlplane/internal/placement"
)

// Node is a node as it stands.
type Node struct {
	UID, Name, Runtime, Address, Version string

	Capacity     int
	Functions    bool
	Tasks        bool
	RegisteredAt time.Time
	State        nodes.State
}

// NodeOf reads what a node says of itself.
func NodeOf(n *hearthv1.Node, now time.Time) *Node {
	return &Node{
		UID: n.GetUid(), Name: n.GetName(), Runtime: n.GetRuntime(), Address: n.GetAddress(), Version: n.GetVersion(),
		Capacity: int(n.GetCapacity()), Functions: n.GetSupportsFunctions(), Tasks: n.GetSupportsTasks(), RegisteredAt: now,
	}
}

// Supports says whether the node takes Runs of the group.
func (n *Node) Supports(g placement.Group) bool {
	return n.Runtime == g.Runtime && (g.Task && n.Tasks || !g.Task && n.Functions)
}

// Place is the node as placement sees it.
func (n *Node) Place(reserved int) placement.Node {
	return placement.Node{
		UID: n.UID, Runtime: n.Runtime, Functions: n.Functions, Tasks: n.Tasks,
		Live: n.State.Placeable(), Capacity: n.Capacity, Reserved: reserved,
	}
}

// Proto is the node on the wire.
func (n *Node) Proto(reserved int) *hearthv1.Node {
	return &hearthv1.Node{
		Uid: n.UID, Name: n.Name, Runtime: n.Runtime, Address: n.Address, Capacity: int32(n.Capacity),
		SupportsFunctions: n.Functions, SupportsTasks: n.Tasks, Version: n.Version, State: phases[n.State.Phase],
		Reserved: int32(reserved), RegisterTime: stamp(n.RegisteredAt), LeaseExpireTime: stamp(n.State.Until),
	}
}

// phases: a fenced node looks like one that is drained, until its lease has ended.
var phases = map[nodes.Phase]hearthv1.NodeState{
	nodes.Live:     hearthv1.NodeState_NODE_STATE_READY,
	nodes.Draining: hearthv1.NodeState_NODE_STATE_DRAINING,
	nodes.Fenced:   hearthv1.NodeState_NODE_STATE_DRAINING,
	nodes.Lost:     hearthv1.NodeState_NODE_STATE_LOST,
	nodes.Gone:     hearthv1.NodeState_NODE_STATE_LOST,
}
