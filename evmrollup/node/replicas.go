package node

import (
	"context"

	"github.com/jamq/jamq/builder/pglog"
)

// Replicas describes the cluster of a node, for operators.
type Replicas struct {
	// Epoch counts how often a replica has begun to lead. Leader is the address of the replica
	// that leads or, if there is none, that has led last.
	Epoch  uint64
	Leader string
	// Followers are the other replicas.
	Followers []pglog.Member
}

// Replicas returns the replicas of the rollup, with their addresses and lags. The
// errors are those of Leader.
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

// lagOf returns the number of writes that a follower had not read yet when the
// database last saw it.
func (r *Replicas) lagOf(address string) uint64 {
	for _, f := range r.Followers {
		if f.Name == address {
			return f.Lag
		}
	}
	return 0
}
