package jamnps

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/submit"
)

// lacksFinal reports whether at least FinalPeers peers report final blocks that the
// feed has not delivered yet.
func (f *Feed) lacksFinal() bool {
	lacking := 0
	for _, p := range f.peers() {
		if final, _, known := p.announced(); known && f.tree.Get(final.hash) == nil {
			lacking++
		}
	}
	return lacking >= f.cfg.FinalPeers
}

// loseFinal is called if the feed cannot reach the block that a peer calls final, because
// it is too far away or on another chain.
func (f *Feed) loseFinal(p *peer, err error) error {
	f.lost[p.index] = fmt.Errorf("peer %s: %w", p.Addr, err)
	f.loop.NoteContradiction(f.lost[p.index])
	// The block that the peer calls final does not fit the delivered blocks. Usually
	// checkFinality waits some slots before Follow ends for that reason. Follow ends at once
	// if the block is more than MaxGap blocks away and too few other peers are left to make a
	// block final.
	if n := len(f.lost); errors.Is(err, feed.ErrExcludes) || n < f.cfg.FinalPeers || f.cfg.FollowPeers-n >= f.cfg.FinalPeers {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrHistoryLost, f.lost[p.index])
}

// findFinal withdraws loseFinal, because the peer's final block is in reach again.
func (f *Feed) findFinal(p *peer) { delete(f.lost, p.index) }

// goesBack reports whether a peer's final block is older than one that the same peer has
// called final before.
func (f *Feed) goesBack(p *peer, final leaf) bool {
	if n := f.tree.Get(final.hash); n != nil {
		final.slot = n.Slot
		f.furthest[p.index] = max(f.furthest[p.index], n.Slot)
	}
	// A peer whose final block was never higher may just be behind.
	before := f.furthest[p.index]
	if final.slot < before {
		f.loop.NoteContradiction(fmt.Errorf("%w: peer %s: its final block is %s of slot %d, and was of slot %d before", submit.ErrContradiction, p.Addr, final.hash, final.slot, before))
	}
	return final.slot < before
}

// checkFinality returns an error if FinalPeers peers contradict the finalized block.
func (f *Feed) checkFinality() error {
	// agree counts the peers whose final block is on the delivered chain.
	agree := 0
	for _, p := range f.peers() {
		if final, _, known := p.announced(); known && f.lost[p.index] == nil && f.tree.Get(final.hash) != nil {
			agree++
		}
	}
	if len(f.lost) < f.cfg.FinalPeers || agree >= f.cfg.FinalPeers {
		// Too few peers contradict the feed, or as many agree with it.
		f.excluded.End()
		return nil
	}
	// The error wraps ErrHistoryLost only after FeedConfig.LostAfter slots.
	return f.excluded.Note(ErrHistoryLost, f.cfg.LostAfter, f.client.cfg.Codec.Spec().SlotDuration, errors.Join(slices.Collect(maps.Values(f.lost))...))
}

// finalize reports to the sink the highest block that enough peers call final.
func (f *Feed) finalize(ctx context.Context, to submit.ChainSink) error {
	finals := make(map[*node][]string) // the addresses of the peers that report each block
	for _, p := range f.peers() {
		final, _, known := p.announced()
		n := f.tree.Get(final.hash)
		// The queue was too full to take the block that this peer calls final. Its newest
		// ancestor in the queue is final too, and reporting that makes room.
		if below := f.beneath[p.index]; n == nil && below != nil {
			n = f.tree.Get(below.Hash)
		}
		if known && n != nil {
			finals[n] = append(finals[n], p.Addr)
		}
	}
	var failed error
	for _, candidate := range slices.SortedFunc(maps.Keys(finals), higher) {
		var by []string
		for n, peers := range finals {
			if n.Descends(candidate) {
				by = append(by, peers...)
			}
		}
		if len(by) < f.cfg.FinalPeers || candidate.Height <= f.tree.Finalized().Height {
			continue
		}
		if f.cfg.CheckFinal != nil {
			// If the host refuses this block, check the next lower one that peers call final. A
			// peer that invents a final block therefore does not delay finality.
			if err := f.cfg.CheckFinal(ctx, candidate.Hash); err != nil {
				slices.Sort(by)
				failed = errors.Join(failed, fmt.Errorf("block %s of slot %d is called final by %v, and that is not proved: %w", candidate.Hash, candidate.Slot, by, err))
				continue
			}
		}
		moved, err := f.chain().Finalize(ctx, to, candidate, ErrHistoryLost)
		if moved {
			f.forgetBacking()
			clear(f.beneath)
		}
		return errors.Join(err, failed)
	}
	return failed
}

// higher orders blocks by height, highest first, and at the same height by hash.
func higher(a, b *node) int {
	return cmp.Or(cmp.Compare(b.Height, a.Height), bytes.Compare(a.Hash[:], b.Hash[:]))
}
