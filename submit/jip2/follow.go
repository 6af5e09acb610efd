package jip2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/internal/headers"
	"github.com/jamq/jamq/submit"
)

// Follow implements submit.ChainFeed. It runs until ctx ends, and then returns ctx's error, or
// until it meets an error that wraps ErrHistoryLost, ErrClosed or the sink's error. After any other
// failure of the node or the connection, Follow tries again. If Follow is already running, a second
// call returns ErrInvalidConfig.
func (f *Feed) Follow(ctx context.Context, to submit.ChainSink) error {
	if !f.loop.Begin() {
		return fmt.Errorf("%w: Follow is running", ErrInvalidConfig)
	}
	defer f.loop.End()
	heads := f.listen(ctx)
	defer heads.close()
	wait := func(failed bool) bool {
		if !failed {
			return heads.wait(ctx, f.spec.SlotDuration)
		}
		least := min(retryAfter, f.spec.SlotDuration)
		return backoff.Pause(ctx, least) && heads.wait(ctx, f.spec.SlotDuration-least)
	}
	return f.loop.Run(ctx, f.log, f.spec.SlotDuration, func() error { return f.catchUp(ctx, to) }, wait, ErrClosed, feed.ErrSink, ErrHistoryLost, ErrClosed)
}

// Health returns the condition of the feed for monitoring: for example its heads, whether the node
// is connected, and how far the feed is behind.
func (f *Feed) Health() submit.FeedHealth {
	h := f.loop.Health()
	best, final := f.Heads()
	h.Best, h.Finalized, h.Wanted = best.Slot, final.Slot, 1
	if f.client.isConnected() {
		h.Nodes = 1
	}
	f.mu.Lock()
	named := f.named.Slot
	f.mu.Unlock()
	if named > h.Best {
		h.Behind = named - h.Best
	}
	h.AnswerTime = f.answerTime()
	return h
}

// chain wraps the tree of delivered blocks for the code that all feeds share.
func (f *Feed) chain() feed.Chain[fates] {
	return feed.Chain[fates]{Mu: &f.mu, Tree: f.tree, Loop: &f.loop}
}

// retryAfter is the shortest time between a failure and the next attempt, unless slots are even
// shorter. Without this pause a node could cause any number of attempts, because each of its
// updates wakes the feed.
const retryAfter = time.Second

// catchUp delivers the blocks up to the node's heads, and then reports finality.
func (f *Feed) catchUp(ctx context.Context, to submit.ChainSink) error {
	final, best, err := f.askHeads(ctx)
	if err != nil {
		return err
	}
	at, before := jamq.HeaderHash(final.HeaderHash), f.tree.Finalized().Hash
	if f.fullAt == at && !at.IsZero() { // fetch no blocks before there is room for them
		return fmt.Errorf("%w: the final block is of slot %d", chainview.ErrFull, final.Slot)
	}
	undelivered := f.deliver(ctx, to, best, final)
	full := errors.Is(undelivered, chainview.ErrFull)
	for _, fatal := range []error{feed.ErrSink, ErrHistoryLost, ErrClosed} {
		if errors.Is(undelivered, fatal) {
			return undelivered
		}
	}
	notFinal := f.deliverFinal(ctx, to, final)
	if notFinal == nil {
		notFinal = f.finalize(ctx, to, at)
	}
	moved := f.tree.Finalized().Hash != before
	switch {
	case full && notFinal == nil && moved: // finality has made room
		return f.deliver(ctx, to, best, final)
	case full && notFinal == nil:
		f.fullAt = at
	}
	return f.checkApart(at, moved || full, undelivered, notFinal)
}

// checkApart joins the errors of delivering the node's best and final block.
func (f *Feed) checkApart(final jamq.HeaderHash, advances bool, best, notFinal error) error {
	n := f.tree.Get(final)
	older := n == nil || n.Height < f.tree.Finalized().Height
	switch {
	// A final block that contradicts the delivered blocks for longer than
	// FeedConfig.LostAfter is ErrHistoryLost.
	case errors.Is(notFinal, feed.ErrApart):
		return f.apart.Note(ErrHistoryLost, f.cfg.LostAfter, f.spec.SlotDuration, errors.Join(notFinal, best))
	case notFinal != nil:
		return errors.Join(notFinal, best)
	// This does not count as lost history. It would if the feed made no other progress and the
	// node's best chain were apart from the delivered blocks. If that chain excludes the
	// finalized block, the node must also call an older block final than the feed does;
	// otherwise the node only contradicts itself.
	case advances, !errors.Is(best, feed.ErrApart), errors.Is(best, feed.ErrExcludes) && !older:
		f.agree()
		return best
	}
	return f.apart.Note(ErrHistoryLost, f.cfg.LostAfter, f.spec.SlotDuration, best)
}

// agree records that the node's chain continues the delivered blocks.
func (f *Feed) agree() {
	f.apart.End()
	f.oldest = 0
}

// askHeads requests the node's final and best block at the same time.
func (f *Feed) askHeads(ctx context.Context) (final, best BlockDescriptor, err error) {
	var asking errgroup.Group
	asking.Go(func() (err error) {
		final, err = f.askHead(ctx, f.client.FinalizedBlock)
		return err
	})
	asking.Go(func() (err error) {
		best, err = f.askHead(ctx, f.client.BestBlock)
		return err
	})
	err = asking.Wait()
	if err == nil && best.HeaderHash != (Hash{}) && headers.CheckAhead(f.clock, time.Now(), best.Slot) == nil {
		f.noteNamed(best)
	}
	return final, best, err
}

// deliver imports the blocks up to a head into the sink, parents first.
func (f *Feed) deliver(ctx context.Context, to submit.ChainSink, head, final BlockDescriptor) error {
	if head.HeaderHash == (Hash{}) {
		return fmt.Errorf("%w: the best block is the block of zeros", ErrMalformed)
	}
	if err := f.checkSlot(head); err != nil || jamq.HeaderHash(head.HeaderHash) == f.tree.Best().Hash && !f.tree.Rests() {
		return err
	}
	steps, err := f.fetch(ctx, head)
	if err != nil {
		return err
	}
	if len(steps) == 0 { // a known block
		return f.makeBest(ctx, to, f.tree.Get(jamq.HeaderHash(head.HeaderHash)))
	}
	// The blocks before the head are delivered as a fork. Only with the head, the queue
	// switches to this chain.
	return f.importAll(ctx, to, steps, true, final)
}

// deliverFinal imports the blocks up to the node's final block.
func (f *Feed) deliverFinal(ctx context.Context, to submit.ChainSink, final BlockDescriptor) error {
	hash := jamq.HeaderHash(final.HeaderHash)
	switch {
	case f.tree.Excludes(hash, final.Slot):
		return f.chain().Exclude(hash, final.Slot)
	case hash.IsZero():
		// A node without finality names the hash of zeros. This is a contradiction only if it
		// has called a block final before.
		if n := f.tree.Finalized(); n.Hash != f.cfg.Root.Hash {
			f.loop.NoteContradiction(fmt.Errorf("%w: it has no final block, and %s of slot %d was final before", submit.ErrContradiction, n.Hash, n.Slot))
		}
		return nil
	case f.tree.Get(hash) != nil, final.Slot <= f.tree.Finalized().Slot:
		if n := f.tree.Finalized(); final.Slot < n.Slot {
			f.loop.NoteContradiction(fmt.Errorf("%w: its final block is %s of slot %d, and %s of slot %d was final before", submit.ErrContradiction, hash, final.Slot, n.Hash, n.Slot))
		}
		return f.checkSlot(final)
	}
	steps, err := f.fetch(ctx, final)
	if err != nil {
		return err
	}
	return f.importAll(ctx, to, steps, false, final)
}

// importAll delivers blocks to the sink in order.
func (f *Feed) importAll(ctx context.Context, to submit.ChainSink, steps []step, best bool, final BlockDescriptor) error {
	// All blocks up to this index are final, because the node's final block is among them. The
	// index is -1 if it is not.
	sure := slices.IndexFunc(steps, func(s step) bool { return s.HeaderHash == final.HeaderHash })
	for i := range steps {
		n, block := f.build(&steps[i])
		head := f.tree.BestHash()
		moves := best && i == len(steps)-1
		if moves {
			head = n.Hash
		}
		err := to.Import(ctx, block, head)
		if errors.Is(err, chainview.ErrFull) && i <= sure {
			// The queue is full. The blocks before this one are final too, so report that: the
			// queue then drops old blocks and has room.
			if err := f.finalize(ctx, to, block.Parent); err != nil {
				return err
			}
			err = to.Import(ctx, block, head)
		}
		switch {
		case errors.Is(err, chainview.ErrFull):
			return fmt.Errorf("jip2: block %s waits for finality: %w", block.Hash, err)
		case err != nil:
			return fmt.Errorf("%w: block %s: %w", feed.ErrSink, block.Hash, err)
		}
		// Record each block at once, because a later block may fail.
		f.mu.Lock()
		f.tree.Add(n)
		delete(f.learned, n.Hash)
		if moves {
			f.tree.SetBest(n)
		}
		f.mu.Unlock()
		if moves {
			f.loop.NoteBest()
		}
		// In a long gap, report finality from time to time, so that the queue can
		// forget old blocks before it is full.
		if i <= sure && (i+1)%f.finalEvery == 0 {
			if err := f.finalize(ctx, to, n.Hash); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeBest makes a block that was delivered earlier the best block.
func (f *Feed) makeBest(ctx context.Context, to submit.ChainSink, n *node) error {
	if final := f.tree.Finalized(); n.Height < final.Height {
		f.loop.NoteContradiction(fmt.Errorf("%w: its best block %s of slot %d is an ancestor of %s of slot %d, which was final before", submit.ErrContradiction, n.Hash, n.Slot, final.Hash, final.Slot))
		return nil
	}
	return f.chain().MakeBest(ctx, to, n, true)
}

// build makes the block that the queue receives, and its node in the feed's tree.
func (f *Feed) build(s *step) (*node, jamq.Block) {
	parent := f.tree.Get(s.parent)
	n := parent.Child(jamq.HeaderHash(s.HeaderHash), s.Slot, make(fates, len(s.answers)))
	// The block contains only the rollup's own packages, because JIP-2 shows no
	// others.
	block := jamq.Block{Hash: n.Hash, Parent: parent.Hash, Slot: n.Slot, AccumulatedKnown: true}
	packages := f.packages()
	order := slices.SortedFunc(maps.Keys(s.answers), jamq.PackageHash.Compare)
	for _, pkg := range order {
		before := parent.Note[pkg]
		if a := s.answers[pkg]; before.contradicts(a) {
			f.loop.NoteContradiction(fmt.Errorf("%w: package %s is %s (accumulated: %t) at block %s, and was %s before", submit.ErrContradiction, pkg, &a.status, a.taken, n.Hash, before.stage))
		}
		at := packages[pkg].anchor
		if at == nil { // may have been delivered since
			at = f.tree.Get(packages[pkg].context.Anchor)
		}
		expires := at != nil && n.Height >= at.Height+uint64(f.spec.RecentHistory)
		after, does := before.next(&f.spec, n.Slot, expires, s.answers[pkg])
		n.Note[pkg] = after
		if does.makesAvailable {
			block.Available = append(block.Available, before.core)
		}
		if does.condemns && before.report != (common.Hash{}) {
			block.Condemned = append(block.Condemned, before.report)
		}
		if does.accumulates {
			block.Accumulated = append(block.Accumulated, pkg)
		}
		if does.reports {
			block.Reported = append(block.Reported, jamq.Report{
				Hash: after.report, Package: pkg, Core: after.core,
				Anchor: packages[pkg].context.Anchor, Prerequisites: packages[pkg].context.Prerequisites,
			})
		}
	}
	f.makeRoom(n, &block, order)
	return n, block
}

// makeRoom resolves contradictions between the node's answers about cores.
func (f *Feed) makeRoom(n *node, block *jamq.Block, order []jamq.PackageHash) {
	// A core can hold only one report at a time.
	busy := make(map[jamq.CoreIndex]jamq.PackageHash)
	block.Reported = slices.DeleteFunc(block.Reported, func(r jamq.Report) bool {
		// Of two new reports on the same core, only the first one is kept.
		if other, twice := busy[r.Core]; twice {
			f.loop.NoteContradiction(fmt.Errorf("%w: packages %s and %s are on core %d at block %s", submit.ErrContradiction, other, r.Package, r.Core, n.Hash))
			delete(n.Note, r.Package) // the next block reports it
			return true
		}
		busy[r.Core] = r.Package
		return false
	})
	for _, pkg := range order {
		at := n.Note[pkg]
		// Two packages cannot be on the same core. The node's status of the other one is out of
		// date: its report must have become available before the new one took the core.
		if by, taken := busy[at.core]; taken && by != pkg && at.stage == onCore {
			n.Note[pkg] = fate{stage: available, core: at.core, since: n.Slot}
			block.Available = append(block.Available, at.core)
		}
	}
}

// finalize reports to the sink that a block is final.
func (f *Feed) finalize(ctx context.Context, to submit.ChainSink, hash jamq.HeaderHash) error {
	moved, err := f.chain().Finalize(ctx, to, f.tree.Get(hash), ErrHistoryLost)
	if !moved {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// Forget the blocks and packages that can no longer change anything.
	maps.DeleteFunc(f.learned, func(_ jamq.HeaderHash, l *learned) bool { return l.slot <= f.tree.Finalized().Slot })
	f.settle()
	return nil
}

// settle moves the packages whose fate is final from the watched to the settled
// ones.
func (f *Feed) settle() {
	for pkg, w := range f.watched {
		if w.anchor == nil { // may have been delivered since
			w.anchor = f.tree.Get(w.context.Anchor)
			f.watched[pkg] = w
		}
		at := f.tree.Finalized().Note[pkg]
		if at.settled(&f.spec, f.tree.Finalized().Slot) || at.stage == unseen && f.expired(&w) {
			delete(f.watched, pkg)
			f.settled[pkg] = w
		}
	}
	// No later block can report these packages.
	maps.DeleteFunc(f.settled, func(_ jamq.PackageHash, w watched) bool { return f.expired(&w) })
}

// expired reports whether no block after the finalized one can report a package.
func (f *Feed) expired(w *watched) bool {
	final, oldest, recent := f.tree.Finalized(), f.tree.Oldest(), uint64(f.spec.RecentHistory)
	if w.anchor != nil {
		return final.Height >= w.anchor.Height+recent
	}
	// The tree has every block of the finalized chain from the oldest one on, and the anchor
	// is not among them. An anchor in this range is on another chain. An older anchor has
	// expired, unless the tree has too few blocks to know.
	if slot := w.context.AnchorSlot; slot > 0 && slot <= final.Slot && (slot >= oldest.Slot || oldest.Height+recent <= final.Height+1) {
		return true
	}
	// It is unknown how old the anchor is. The lookup anchor has an age limit too, and its
	// slot is known.
	return final.Slot >= w.context.LookupAnchorSlot.Add(f.spec.MaxLookupAnchorAge)
}

// ascending returns the hashes sorted and without duplicates, as an encoded refine
// context requires.
func ascending(hashes []jamq.PackageHash) []jamq.PackageHash {
	out := slices.Clone(hashes)
	slices.SortFunc(out, func(a, b jamq.PackageHash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(out)
}
