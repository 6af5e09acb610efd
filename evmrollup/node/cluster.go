package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/journal"
)

// ErrNoCluster is returned by methods that need a cluster if Config.Cluster is not
// set.
var ErrNoCluster = errors.New("node: it has no cluster")

// openLog opens the builder's log in the database of the cluster or in the data
// directory.
func (n *Node) openLog(ctx context.Context) (log builder.Log, err error) {
	switch {
	case n.cfg.Cluster.URL != "":
		cfg := n.cfg.Cluster
		cfg.Logger = n.log
		n.shared, err = pglog.Open(ctx, cfg)
		return n.shared, err
	case n.store != nil:
		return n.store.Log, nil
	}
	return noLog{}, nil
}

// closeLog closes the log that the node shares with other replicas, if any.
func (n *Node) closeLog() error {
	if n.shared == nil {
		return nil
	}
	return n.shared.Close()
}

// runBuilder runs the builder until ctx ends or Leave is called.
func (n *Node) runBuilder(ctx context.Context) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.leaving, cancel)()
	err := n.builder.Run(running)
	close(n.stopped)
	if errors.Is(err, journal.ErrClosed) { // Leave has given up a write
		return running.Err()
	}
	return err
}

// untilLeft wraps a part of Run that ends when Leave stops the builder.
func (n *Node) untilLeft(part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := part(ctx)
		if n.leaving.Err() != nil {
			// Run must not end, so that clients can still read the node.
			<-ctx.Done()
		}
		return err
	}
}

// Clustered reports whether the node is one of several replicas.
func (n *Node) Clustered() bool { return n.shared != nil }

// Follows reports whether another replica is the leader of the rollup. This node then
// accepts no transactions, and its pool is empty. Follows also returns true after
// Leave.
func (n *Node) Follows() bool {
	if n.shared == nil {
		return false
	}
	h := n.builder.Health()
	return h.Follows || !h.Running
}

// Leader returns the address of the leader or, if there is none, of the last leader.
// The error wraps ErrNoCluster, or is that of the database.
func (n *Node) Leader(ctx context.Context) (address string, err error) {
	if n.shared == nil {
		return "", ErrNoCluster
	}
	lead, err := n.shared.Leader(ctx)
	return lead.Address, err
}

// followJAM passes the lead on if no JAM blocks arrive any more.
func (n *Node) followJAM(ctx context.Context) error {
	const leases = 4 // a change of the lead costs more than a short wait
	stale := max(staleSlots*n.cfg.Spec.SlotDuration, leases*n.cfg.Cluster.Lease)
	for backoff.Pause(ctx, n.cfg.Spec.SlotDuration) {
		h := n.builder.Health()
		// A node that has received no block since it became the leader remains the
		// leader. Otherwise the replicas would take turns while none of them can reach
		// JAM.
		if h.Follows || h.LastImport.IsZero() || time.Since(h.LastImport) <= stale {
			continue
		}
		r, err := n.Replicas(ctx)
		near := func(f pglog.Member) bool { return f.Lag <= mostLag && f.Seen <= n.cfg.Cluster.Lease }
		// No follower has read nearly all writes.
		if err != nil || !slices.ContainsFunc(r.Followers, near) {
			continue
		}
		n.log.Error("no JAM block arrives; the lead is handed over", "since", h.LastImport)
		if err := n.Leave(ctx, ""); err != nil {
			return err
		}
		<-ctx.Done()
	}
	return ctx.Err()
}

// mostLag is the maximum number of writes by which a follower may be behind the leader
// and still count as ready.
const mostLag = 1000

// Leave stops the builder. If this node is the leader, the replica with the address to
// becomes the leader, or any replica if to is empty. Clients can still read the node
// until the context of Run ends. The channel of Left is closed when Leave returns.
//
// If a write to the database has not returned when ctx ends, Leave abandons the write,
// and any replica may become the leader. The error wraps ErrNoCluster or is that of the
// database. After an error of the database, another replica becomes the leader when
// this node's lease ends.
func (n *Node) Leave(ctx context.Context, to string) error {
	if n.shared == nil {
		return ErrNoCluster
	}
	n.leave()
	var err error
	select {
	case <-n.stopped:
		err = n.shared.HandOver(ctx, to)
	case <-ctx.Done():
		err = n.shared.Close()
	}
	n.leftOnce.Do(func() { close(n.left) })
	if errors.Is(err, journal.ErrFenced) {
		return nil // it did not lead
	}
	return err
}

// Left returns a channel that is closed when Leave has returned. The node's process
// should then end.
func (n *Node) Left() <-chan struct{} { return n.left }

// followerReady returns an error that wraps ErrNotReady if this follower is too far
// behind the leader.
func (n *Node) followerReady(ctx context.Context) error {
	r, err := n.Replicas(ctx)
	if err != nil {
		return fmt.Errorf("%w: the log cannot be read: %w", ErrNotReady, err)
	}
	if lag := r.lagOf(n.cfg.Cluster.Address); lag > mostLag {
		return fmt.Errorf("%w: it is %d writes behind %s", ErrNotReady, lag, r.Leader)
	}
	return nil
}
