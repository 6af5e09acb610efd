package jamnps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jamq/jamq/submit"
)

// lacksFinal reports whether enough peers report final blocks that were not delivered yet.
func (f *Feed) lacksFinal() bool {
	lacking := 0
	for _, p := range f.peers() {
		if final, _, known := p.announced(); known && f.tree.Get(final.hash) == nil {
			lacking++
		}
	}
	return lacking >= f.cfg.FinalPeers
}

// loseFinal records that the final block of a peer is out of reach (err wraps ErrHistoryLost), or
// that its chain excludes the finalized block. In the first case loseFinal returns err if enough
// peers agree, because one peer alone must not be able to stop the feed. The second case is left to
// checkFinality.
func (f *Feed) loseFinal(p *peer, err error) error {
	f.lost[p.index] = err
	if errors.Is(err, ErrHistoryLost) && len(f.lost) >= f.cfg.FinalPeers {
		return err
	}
	return nil
}

// findFinal withdraws what loseFinal has recorded about a peer, because the peer's final block is
// in reach again or the peer is not connected.
func (f *Feed) findFinal(p *peer) { delete(f.lost, p.index) }

// checkFinality returns an error if the final blocks of enough peers are out of reach or exclude
// the finalized block. If this lasts longer than FeedConfig.LostAfter, the error wraps
// ErrHistoryLost.
func (f *Feed) checkFinality() error {
	if len(f.lost) < f.cfg.FinalPeers {
		f.excluded.End()
		return nil
	}
	return f.excluded.Note(ErrHistoryLost, f.cfg.LostAfter, f.client.cfg.Codec.Spec().SlotDuration, errors.Join(slices.Collect(maps.Values(f.lost))...))
}

// finalize reports the highest block that enough peers call final to the sink. If the sink had no
// room for a peer's final block, the newest delivered ancestor of that block stands for it. The
// ancestor is final too, and to report it makes room in the queue.
func (f *Feed) finalize(ctx context.Context, to submit.ChainSink) error {
	var finals []*node
	for _, p := range f.peers() {
		final, _, known := p.announced()
		n := f.tree.Get(final.hash)
		if below := f.beneath[p.index]; n == nil && below != nil {
			n = f.tree.Get(below.Hash)
		}
		if known && n != nil {
			finals = append(finals, n)
		}
	}
	var highest *node
	for _, candidate := range finals {
		votes := 0
		for _, n := range finals {
			if n.Descends(candidate) {
				votes++
			}
		}
		if votes >= f.cfg.FinalPeers && (highest == nil || candidate.Height > highest.Height) {
			highest = candidate
		}
	}
	if f.cfg.CheckFinal != nil && highest != nil && highest.Height > f.tree.Finalized().Height {
		if err := f.cfg.CheckFinal(ctx, highest.Hash); err != nil {
			return fmt.Errorf("block %s of slot %d is called final by %d peers, and that is not proved: %w", highest.Hash, highest.Slot, f.cfg.FinalPeers, err)
		}
	}
	moved, err := f.chain().Finalize(ctx, to, highest, ErrHistoryLost)
	if moved {
		f.forgetBacking()
		clear(f.beneath)
	}
	return err
}
