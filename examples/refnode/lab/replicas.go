package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/examples/refnode/live"
	"github.com/jamq/jamq/internal/backoff"
)

// followReplicas reads the replicas for the page each second until ctx ends. While the database
// does not answer, the page shows the replicas that were there before.
func (n *Node) followReplicas(ctx context.Context) {
	for backoff.Pause(ctx, time.Second) {
		limited, cancel := context.WithTimeout(ctx, n.cfg.Cluster.Lease)
		r, err := n.Replicas(limited)
		cancel()
		if err == nil {
			n.replicas.Store(n.shown(&r))
		}
	}
}

// shown returns the replicas in the form that the page needs.
func (n *Node) shown(r *node.Replicas) *live.Cluster {
	self := n.cfg.Cluster.Address
	c := &live.Cluster{Epoch: r.Epoch, Kill: n.cfg.Lab, Replicas: []live.Replica{{Address: r.Leader, Leads: true, Self: r.Leader == self}}}
	for _, f := range r.Followers {
		c.Replicas = append(c.Replicas, live.Replica{Address: f.Name, Self: f.Name == self, Lag: f.Lag, Away: f.Seen > n.cfg.Cluster.Lease})
	}
	return c
}

// killMethod is the method by which a replica kills another one.
const killMethod = "admin_killReplica"

// KillReplica ends the process of a replica as a crash does, so that users of the page can watch
// how the others go on. The error wraps
//
//   - node.ErrNoCluster if the node has no replicas,
//   - ErrRefused if Config.Lab is not set, if no replica has this address, or if the replica of
//     this address does not answer or has no Config.Lab.
//
// Other errors are those of the database.
func (n *Node) KillReplica(ctx context.Context, address string) error {
	r, err := n.Replicas(ctx)
	isAddress := func(f pglog.Member) bool { return f.Name == address }
	switch {
	case err != nil:
		return err
	case !n.cfg.Lab:
		return fmt.Errorf("%w: replicas can be killed only with -lab", ErrRefused)
	case address == n.cfg.Cluster.Address:
		n.log.Warn("this replica is killed from the page of a replica")
		time.AfterFunc(killPause, killProcess)
		return nil
	case address != r.Leader && !slices.ContainsFunc(r.Followers, isAddress):
		return fmt.Errorf("%w: %s is no replica", ErrRefused, address)
	}
	client, err := rpc.DialOptions(ctx, address, rpc.WithHTTPAuth(n.cfg.Authorize))
	if err != nil {
		return err
	}
	defer client.Close()
	var ok bool
	if err := client.CallContext(ctx, &ok, killMethod, address); err != nil {
		return fmt.Errorf("%w: replica %s: %w", ErrRefused, address, err)
	}
	return nil
}

// killPause lets the answer reach the user.
const killPause = 100 * time.Millisecond

// killProcess ends this process without any of its orderly steps.
func killProcess() {
	self, err := os.FindProcess(os.Getpid())
	if err = errors.Join(err, self.Kill()); err != nil {
		panic(err)
	}
}
