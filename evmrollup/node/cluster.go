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

// ErrNoCluster is returned by the methods that need Config.Cluster.
var ErrNoCluster = errors.New("node: it has no cluster")

// openLog returns the log of the builder: in the database of the cluster, in the data directory, or
// none.
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

// closeLog closes the log that the node shares with others.
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

// untilLeft returns a part of Run that goes on after the builder has stopped because of Leave, so
// that the node can be read until ctx ends.
func (n *Node) untilLeft(part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := part(ctx)
		if n.leaving.Err() != nil {
			<-ctx.Done()
		}
		return err
	}
}

// Clustered reports whether the node is one of several replicas.
func (n *Node) Clustered() bool { return n.shared != nil }

// Follows reports whether another replica leads the rollup, so that this node takes no
// transactions and has an empty pool. It is also true after Leave.
func (n *Node) Follows() bool {
	if n.shared == nil {
		return false
	}
	h := n.builder.Health()
	return h.Follows || !h.Running
}

// Leader returns the address of the replica that leads, or has led last. The error wraps
// ErrNoCluster, or is that of the database.
func (n *Node) Leader(ctx context.Context) (address string, err error) {
	if n.shared == nil {
		return "", ErrNoCluster
	}
	lead, err := n.shared.Leader(ctx)
	return lead.Address, err
}

// followJAM hands the lead over if this node leads and no longer gets JAM blocks, while another
// replica has read nearly all writes. A node that has got no block since it leads keeps the lead,
// so that the replicas do not pass the lead round if none of them reaches JAM.
func (n *Node) followJAM(ctx context.Context) error {
	const leases = 10 // a change of the lead costs more than a short wait
	stale := max(staleSlots*n.cfg.Spec.SlotDuration, leases*n.cfg.Cluster.Lease)
	for backoff.Pause(ctx, n.cfg.Spec.SlotDuration) {
		h := n.builder.Health()
		if h.Follows || h.LastImport.IsZero() || time.Since(h.LastImport) <= stale {
			continue
		}
		r, err := n.Replicas(ctx)
		near := func(f pglog.Member) bool { return f.Lag <= mostLag && f.Seen <= n.cfg.Cluster.Lease }
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

// mostLag is the number of writes up to which a follower is ready.
const mostLag = 1000

// Leave stops the builder and, if this node leads, hands the lead over to the replica with an
// address, or to any if the address is empty. The node can be read until the context of Run ends.
// The channel of Left is closed when Leave returns. If ctx ends first, because a write waits for
// the database, Leave gives the write up and the lead to any replica. The error wraps ErrNoCluster,
// or is that of the database; another replica then leads when the lease has ended.
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

// Left returns a channel that is closed when Leave has returned, so that the program ends.
func (n *Node) Left() <-chan struct{} { return n.left }

// followerReady returns an error if the node follows and is far behind.
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
