package jamnps

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/codec"
)

// sizesAfter returns the sizes of the validator sets after a delivered block. Before
// Gray Paper 0.8.0 they are constants of the chain. Later they are known for each block
// except the root, for which sizesAfter reads them from the state or, if no peer serves
// it, from earlier headers. The argument root is the state root after the block, from
// the header of its child.
func (f *Feed) sizesAfter(ctx context.Context, n *node, root common.Hash) (codec.SetSizes, error) {
	c := f.client.cfg.Codec
	if v := c.Spec().Validators; c.Version() < codec.V080 {
		return codec.SetSizes{Active: v, Next: v}, nil
	}
	if n.Note.sizes != (codec.SetSizes{}) {
		return n.Note.sizes, nil
	}
	sizes, noState := f.sizesInState(ctx, n.Hash, root)
	if noState == nil {
		// The sizes are not stored with the block. The state root that verifies them comes from
		// the header of a child that a peer may have invented, and such a child must mislead
		// only its own fork.
		return sizes, nil
	}
	sizes, noHeaders := f.sizesInHeaders(ctx, n.Hash)
	if noHeaders != nil {
		return codec.SetSizes{}, fmt.Errorf("jamnps: the sizes of the validator sets after block %s: %w", n.Hash, errors.Join(noState, noHeaders))
	}
	f.mu.Lock()
	n.Note.sizes = sizes
	f.mu.Unlock()
	return sizes, nil
}

// sizesInState reads the sizes of the validator sets from the state after a block, which
// it verifies against the state root.
func (f *Feed) sizesInState(ctx context.Context, block jamq.HeaderHash, root common.Hash) (codec.SetSizes, error) {
	active, err := f.chapter(ctx, block, root, statetrie.ChapterValidators, sparing)
	if err != nil {
		return codec.SetSizes{}, err
	}
	pending, err := f.chapter(ctx, block, root, statetrie.ChapterSafrole, sparing)
	if err != nil {
		return codec.SetSizes{}, err
	}
	return readSizes(active, pending)
}

// readSizes reads the sizes of the validator sets from two parts of the JAM state: the
// active validators, C(8), and the part that begins with the validators of the next epoch,
// C(4). From Gray Paper 0.8.0 on, both begin with the number of validators. If a node
// writes no number there, or one that does not fit, the error wraps ErrMalformed.
func readSizes(active, pending []byte) (codec.SetSizes, error) {
	n, after, err := countValidators(active)
	if err != nil {
		return codec.SetSizes{}, fmt.Errorf("active validators: %w", err)
	}
	if after != 0 {
		return codec.SetSizes{}, fmt.Errorf("%w: %d bytes after %d active validators", ErrMalformed, after, n)
	}
	next, _, err := countValidators(pending)
	if err != nil {
		return codec.SetSizes{}, fmt.Errorf("validators of the next epoch: %w", err)
	}
	return codec.SetSizes{Active: n, Next: next}, nil
}

// countValidators decodes the number with which an encoded validator set begins (Gray
// Paper 0.8.0). after is how many bytes follow the validators.
func countValidators(raw []byte) (n, after int, err error) {
	count, rest, err := codec.DecodeNatural(raw)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if most := uint64(len(rest) / codec.ValidatorSize); count < 1 || count > most {
		return 0, 0, fmt.Errorf("%w: %d validators in %d bytes, want 1 to %d", ErrMalformed, count, len(rest), most)
	}
	return int(count), len(rest) - int(count)*codec.ValidatorSize, nil
}

// sizesInHeaders derives the sizes of the validator sets after a block from the headers
// of the block and its ancestors. The newest epoch mark has the number of the next
// validators, and the mark before it the number of the active ones. If the chain has
// fewer marks, it began with the number of validators in its constants.
func (f *Feed) sizesInHeaders(ctx context.Context, block jamq.HeaderHash) (codec.SetSizes, error) {
	spec := f.client.cfg.Codec.Spec()
	const none = -1
	next, most := none, blocksPerRequest
	for fetched := 0; fetched < 2*int(spec.EpochLength); { // two epochs have two marks
		blocks, err := anyPeer(f.client, nil, func(peer int) ([]codec.Effect, error) { return f.fetchSome(ctx, peer, block, most) })
		if errors.Is(err, ErrTooLarge) && most > 1 {
			most /= 4
			continue
		}
		if err != nil {
			return codec.SetSizes{}, err
		}
		for i := range blocks {
			switch mark := blocks[i].Next; {
			case mark != none && next != none:
				return codec.SetSizes{Active: mark, Next: next}, nil
			case mark != none:
				next = mark
			}
			if blocks[i].Block.Hash == f.client.cfg.Genesis {
				if next == none {
					next = spec.Validators
				}
				return codec.SetSizes{Active: spec.Validators, Next: next}, nil
			}
		}
		fetched += len(blocks)
		block = blocks[len(blocks)-1].Block.Parent
	}
	return codec.SetSizes{}, fmt.Errorf("%w: no two epoch marks among the blocks of two epochs", ErrMalformed)
}
