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

// probe checks that a node has the methods that a feed needs. If methods are
// missing, the error wraps ErrUnsupported and names all of them, so that an
// operator sees them at once. Any other error means that the node did not
// answer.
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

// probeRoot checks that the node knows a root of its best block. The arguments are
// the node's answer. If the node does not have the block yet, probeRoot returns no
// error, because the node may have it soon. A zero root is an error; see
// probeBeefyRoot for the exception.
func probeRoot(root Hash, err error) error {
	switch refused := new(Error); {
	case errors.As(err, &refused) && refused.Code == CodeBlockUnavailable:
		return nil
	case err == nil && root == Hash{}:
		return fmt.Errorf("%w: a root of zeros", ErrMalformed)
	}
	return err
}

// probeBeefyRoot checks that the node knows the BEEFY root of its best block.
// Unlike a state root, this root may be zero near the genesis block: the root
// of an empty log is zero, and so is the root of a log with one block that has
// no outputs (GP E.2). probeBeefyRoot therefore accepts zero for the genesis
// block and its children.
func probeBeefyRoot(ctx context.Context, client *Client, best BlockDescriptor) error {
	root, err := client.BeefyRoot(ctx, jamq.HeaderHash(best.HeaderHash))
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

// noParent reports whether err is a node's answer that it does not have the
// parent of a block. The block is then the genesis block, or its parent was
// pruned. JIP-2 defines an error for this case, but some nodes answer null, or
// a slot that does not exist.
func noParent(err error) bool {
	refused := new(Error)
	return errors.As(err, &refused) || errors.Is(err, ErrMalformed)
}

// probeStatus tests the node's method workPackageStatus with two requests about
// a package that does not exist, because the right answers are known:
//
//   - If the anchor is the best block, the package can still be reported. A
//     node that answers otherwise might call live packages lost.
//   - If the anchor is no block, the package cannot be reported. A node that
//     calls it reportable might hide reports, so that packages would seem dead.
func probeStatus(ctx context.Context, client *Client, recentHistory int, best jamq.HeaderHash) error {
	fresh, err := client.WorkPackageStatus(ctx, best, jamq.PackageHash{}, best)
	if err != nil {
		return err
	}
	if r := fresh.Reportable; r == nil || r.RemainingBlocks == 0 || uint64(r.RemainingBlocks) > uint64(recentHistory) {
		return fmt.Errorf("%w: workPackageStatus of an unknown package whose anchor is the best block is %s, want Reportable in 1 to %d blocks",
			ErrMalformed, &fresh, recentHistory)
	}
	old, err := client.WorkPackageStatus(ctx, best, jamq.PackageHash{}, jamq.HeaderHash{})
	switch refused := new(Error); {
	case errors.As(err, &refused):
		return nil // JIP-2 allows an error for such an anchor
	case err == nil && old.Failed == nil:
		return fmt.Errorf("%w: workPackageStatus of an unknown package whose anchor does not exist is %s, want Failed", ErrMalformed, &old)
	}
	return err
}
