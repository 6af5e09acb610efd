package jamnps

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/codec"
)

// checkSizes checks FeedConfig.Sizes. The error wraps ErrInvalidConfig.
func (c *FeedConfig) checkSizes(of *codec.Codec) error {
	if c.Sizes == (codec.SetSizes{}) {
		return nil
	}
	spec := of.Spec()
	most := jamq.ValidatorsOf(spec.Cores)
	if of.Version() < codec.V080 || min(c.Sizes.Active, c.Sizes.Next) < 1 || max(c.Sizes.Active, c.Sizes.Next) > most {
		return fmt.Errorf("%w: Sizes is %+v for a codec of %v, want 0, or 1 to %d from 0.8.0 on", ErrInvalidConfig, c.Sizes, of.Version(), most)
	}
	return nil
}

// sizesAfterRoot returns the sizes of the validator sets after the root. It returns
// zero if only the state after the root contains them. Before Gray Paper 0.8.0, they
// are constants of the chain.
func (f *Feed) sizesAfterRoot() codec.SetSizes {
	c := f.client.cfg.Codec
	if n := c.Spec().Validators; c.Version() < codec.V080 || f.cfg.Sizes == (codec.SetSizes{}) && f.cfg.Root.Hash == f.client.cfg.Genesis {
		return codec.SetSizes{Active: n, Next: n}
	}
	return f.cfg.Sizes
}

// sizesAfter returns the sizes of the validator sets after a delivered block. They are
// always known, except perhaps after the root, for which sizesAfter requests them from
// the peers. The argument root is the state root after the block, from the header of
// its child.
//
// sizesAfter does not remember the answer for the block, because a peer may have
// invented the child. importOne remembers the sizes for the child itself, so that an
// invented child has an effect only on its own fork.
func (f *Feed) sizesAfter(ctx context.Context, n *node, root common.Hash) (codec.SetSizes, error) {
	if n.Note.sizes != (codec.SetSizes{}) {
		return n.Note.sizes, nil
	}
	active, err := f.chapter(ctx, n.Hash, root, statetrie.ChapterValidators, insisting)
	if err != nil {
		return codec.SetSizes{}, fmt.Errorf("jamnps: the number of active validators: %w", err)
	}
	pending, err := f.chapter(ctx, n.Hash, root, statetrie.ChapterSafrole, insisting)
	if err != nil {
		return codec.SetSizes{}, fmt.Errorf("jamnps: the number of the next validators: %w", err)
	}
	return readSizes(active, pending)
}

// readSizes reads the sizes of the validator sets from two parts of the state of Gray
// Paper 0.8.0: the active validators, C(8), and the part that begins with the
// validators of the next epoch, C(4). The error wraps ErrMalformed.
func readSizes(active, pending []byte) (codec.SetSizes, error) {
	set, err := withoutCount(active)
	if err != nil {
		return codec.SetSizes{}, err
	}
	next, rest, err := codec.DecodeNatural(pending)
	most := uint64(len(rest) / codec.ValidatorSize)
	switch n := len(set) / codec.ValidatorSize; {
	case err != nil:
		return codec.SetSizes{}, fmt.Errorf("%w: validators of the next epoch: %w", ErrMalformed, err)
	case n < 1 || len(set)%codec.ValidatorSize != 0:
		return codec.SetSizes{}, fmt.Errorf("%w: %d bytes of active validators, want at least one of %d bytes", ErrMalformed, len(set), codec.ValidatorSize)
	case next < 1 || next > most:
		return codec.SetSizes{}, fmt.Errorf("%w: %d validators of the next epoch in %d bytes, want 1 to %d", ErrMalformed, next, len(rest), most)
	default:
		return codec.SetSizes{Active: n, Next: int(next)}, nil
	}
}

// withoutCount returns the encoded validators in C(8) of Gray Paper 0.8.0. Some nodes
// write their number in front of them; withoutCount removes it.
func withoutCount(validators []byte) ([]byte, error) {
	if len(validators)%codec.ValidatorSize == 0 {
		return validators, nil
	}
	_, rest, err := codec.DecodeNatural(validators)
	if err != nil {
		return nil, fmt.Errorf("%w: validators: %w", ErrMalformed, err)
	}
	return rest, nil
}
