package jip2

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jamq/jamq"
)

// Check checks that the node has the methods that a feed needs and tracks the
// status of packages. A host calls Check at its start to find missing methods
// early; OpenFeed checks the same. recentHistory is the length of the chain's
// recent history, in blocks. The error wraps ErrUnsupported and names all
// missing methods, or it is an error of [Client.Call].
func (c *Client) Check(ctx context.Context, recentHistory int) error {
	return probe(ctx, c, recentHistory)
}

// probe checks that a node has the methods that a feed needs.
func probe(ctx context.Context, client *Client, recentHistory int) error {
	best, err := client.BestBlock(ctx)
	if err != nil {
		return err
	}
	at := jamq.HeaderHash(best.HeaderHash)
	var lacking []string
	var why error
	for _, p := range []struct {
		method string
		check  func() error
	}{
		{"stateRoot", func() error { return probeRoot(client.StateRoot(ctx, at)) }},
		{"beefyRoot", func() error { return probeBeefyRoot(ctx, client, best) }},
		{"workPackageStatus", func() error { return probeStatus(ctx, client, recentHistory, at) }},
	} {
		err := p.check()
		switch refused := new(Error); {
		// Collect all missing methods, so that an operator sees them at once.
		case errors.As(err, &refused), errors.Is(err, ErrMalformed):
			lacking = append(lacking, p.method)
			why = join(why, err)
		case err != nil:
			return err
		}
	}
	if why != nil {
		return fmt.Errorf("%w: %s, without which a builder cannot tell whether a package is alive: %w", ErrUnsupported, strings.Join(lacking, ", "), why)
	}
	return nil
}

// join returns an error that wraps both errors and has their texts in one line.
func join(first, second error) error {
	if first == nil {
		return second
	}
	return fmt.Errorf("%w; %w", first, second)
}

// probeRoot tests whether the node serves a state root or a BEEFY root for its best block.
// Without these roots a host cannot make a refine context.
func probeRoot(root Hash, err error) error {
	switch refused := new(Error); {
	// The node does not have the block yet, but may have it soon.
	case errors.As(err, &refused) && refused.Code == CodeBlockUnavailable:
		return nil
	case err == nil && root == Hash{}:
		return fmt.Errorf("%w: a root of zeros", ErrMalformed)
	}
	return err
}

// probeBeefyRoot checks that the node knows the BEEFY root of its best block.
func probeBeefyRoot(ctx context.Context, client *Client, best BlockDescriptor) error {
	root, err := client.BeefyRoot(ctx, jamq.HeaderHash(best.HeaderHash))
	// A zero root usually means that the node does not know it. Near the genesis block it can
	// be right, because the log is empty or has one block without outputs (GP E.2). Accept it
	// for the genesis block and its children.
	for at, steps := best, 0; err == nil && root == (Hash{}) && steps < 2; steps++ {
		parent, lacking := client.Parent(ctx, jamq.HeaderHash(at.HeaderHash))
		switch {
		case noParent(lacking), lacking == nil && parent.Slot >= at.Slot:
			return nil
		case lacking != nil:
			return lacking
		}
		at = parent
	}
	return probeRoot(root, err)
}

// noParent reports whether the node answers that it does not have a block's parent.
func noParent(err error) bool {
	// The node does not have the parent, for example that of the genesis block. JIP-2 defines
	// an error for this case, but some nodes answer null, or a slot that does not exist.
	refused := new(Error)
	return errors.As(err, &refused) || errors.Is(err, ErrMalformed)
}

// probeStatus tests the method workPackageStatus with two requests about an unknown
// package.
func probeStatus(ctx context.Context, client *Client, recentHistory int, best jamq.HeaderHash) error {
	// This question tests the node. The anchor is the best block, so a later block can still
	// report the package. A node that answers otherwise might call live packages lost.
	fresh, err := client.WorkPackageStatus(ctx, best, jamq.PackageHash{}, best)
	if err != nil {
		return err
	}
	if r := fresh.Reportable; r == nil || r.RemainingBlocks == 0 || uint64(r.RemainingBlocks) > uint64(recentHistory) {
		return fmt.Errorf("%w: workPackageStatus of an unknown package whose anchor is the best block is %s, want Reportable in 1 to %d blocks",
			ErrMalformed, &fresh, recentHistory)
	}
	// This question tests the node. The anchor is the hash of no block, so no block can report
	// the package. A node that nevertheless answers "reportable" probably does so for every
	// package, and would hide reports.
	old, err := client.WorkPackageStatus(ctx, best, jamq.PackageHash{}, jamq.HeaderHash{})
	switch refused := new(Error); {
	case errors.As(err, &refused):
		return nil // JIP-2 allows an error for such an anchor
	case err == nil && old.Failed == nil:
		return fmt.Errorf("%w: workPackageStatus of an unknown package whose anchor does not exist is %s, want Failed", ErrMalformed, &old)
	}
	return err
}
