package node

import (
	"context"

	"github.com/jamq/jamq/builder/pglog"
)

// Replicas describes the cluster of a node, for operators.
type Replicas struct {
	// Epoch is the number of times that a replica has become the leader. Leader is the
	// address of the leader or, if there is none, of the last leader.
	Epoch  uint64
	Leader string
	// Followers are the other replicas.
	Followers []pglog.Member
}

// Replicas returns the replicas of the rollup, and how far each is behind. The errors
// are those of Leader.
func (n *Node) Replicas(ctx context.Context) (r Replicas, err error) {
	if n.shared == nil {
		return r, ErrNoCluster
	}
	lead, err := n.shared.Leader(ctx)
	if err != nil {
		return r, err
	}
	r.Epoch, r.Leader = lead.Epoch, lead.Address
	r.Followers, err = n.shared.Members(ctx)
	return r, err
}

// lagOf returns how many writes a follower had not read when it last reported to the
// database.
func (r *Replicas) lagOf(address string) uint64 {
	for _, f := range r.Followers {
		if f.Name == address {
			return f.Lag
		}
	}
	return 0
}
