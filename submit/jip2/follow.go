package jip2

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit"
)

// errSink marks what the sink refused.
var errSink = errors.New("jip2: block not taken")

// Follow implements submit.ChainFeed. Errors other than ctx's wrap ErrHistoryLost, ErrClosed or the sink's error; what the node or the connection
// fails in is tried again. Only one Follow may run at a time.
func (f *Feed) Follow(ctx context.Context, to submit.ChainSink) error {
	f.mu.Lock()
	if f.following {
		f.mu.Unlock()
		return fmt.Errorf("%w: Follow is running", ErrInvalidConfig)
	}
	f.following = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.following = false
		f.mu.Unlock()
	}()
	heads := f.listen(ctx)
	defer heads.close()
	for {
		err := f.catchUp(ctx, to)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errSink), errors.Is(err, ErrHistoryLost), errors.Is(err, ErrClosed):
			return err
		case err != nil:
			f.log.Warn("cannot follow the chain for now", "err", err)
		}
		if !heads.wait(ctx, f.spec.SlotDuration) {
			return ctx.Err()
		}
	}
}

// listener wakes the feed when a head moves. It only saves time: heads are asked for at least once a slot in any case, so that a notification
// that was lost, or a node that sends none, is no gap.
type listener struct {
	best, final *Subscription[BlockDescriptor]
}

func (f *Feed) listen(ctx context.Context) *listener {
	var l listener
	var err, errFinal error
	l.best, err = f.client.SubscribeBestBlock(ctx)
	l.final, errFinal = f.client.SubscribeFinalizedBlock(ctx)
	if err = errors.Join(err, errFinal); err != nil && ctx.Err() == nil {
		f.log.Warn("no notifications of new blocks, asking every slot", "err", err)
	}
	return &l
}

func (l *listener) close() {
	for _, s := range []*Subscription[BlockDescriptor]{l.best, l.final} {
		if s != nil {
			s.Close()
		}
	}
}

// wait returns when something may have changed, or false when ctx has ended.
func (l *listener) wait(ctx context.Context, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	var best, final <-chan Update[BlockDescriptor]
	if l.best != nil {
		best = l.best.Updates()
	}
	if l.final != nil {
		final = l.final.Updates()
	}
	open := true
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case _, open = <-best:
	case _, open = <-final:
	}
	if !open { // the client was closed: the next call says so
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
	}
	return true
}

// catchUp delivers all that the node has and the feed has not.
func (f *Feed) catchUp(ctx context.Context, to submit.ChainSink) error {
	final, err := f.client.FinalizedBlock(ctx)
	if err != nil {
		return err
	}
	best, err := f.client.BestBlock(ctx)
	if err != nil {
		return err
	}
	if err := f.deliver(ctx, to, best); err != nil {
		return err
	}
	if err := f.deliverFinal(ctx, to, final); err != nil {
		return err
	}
	return f.finalize(ctx, to, jamq.HeaderHash(final.HeaderHash))
}

// deliver imports the way to a head, parents first, and makes it the best block. Only with the head itself anything is decided: the queue sees the
// blocks before it as a branch that is not the best.
func (f *Feed) deliver(ctx context.Context, to submit.ChainSink, head BlockDescriptor) error {
	if jamq.HeaderHash(head.HeaderHash) == f.best.hash && f.resting.IsZero() {
		return nil
	}
	steps, err := f.fetch(ctx, head)
	if err != nil {
		return err
	}
	if len(steps) == 0 { // back to a block that is known
		return f.makeBest(ctx, to, f.nodes[jamq.HeaderHash(head.HeaderHash)])
	}
	return f.importAll(ctx, to, steps, true)
}

// deliverFinal imports the way to a finalized block that is not on what was delivered as best.
func (f *Feed) deliverFinal(ctx context.Context, to submit.ChainSink, final BlockDescriptor) error {
	if f.nodes[jamq.HeaderHash(final.HeaderHash)] != nil || final.Slot <= f.finalized.slot {
		return nil
	}
	steps, err := f.fetch(ctx, final)
	if err != nil {
		return err
	}
	return f.importAll(ctx, to, steps, false)
}

// importAll delivers blocks in order; the last becomes the best one if it is wanted. What the sink has taken is remembered, whatever comes after.
func (f *Feed) importAll(ctx context.Context, to submit.ChainSink, steps []step, best bool) error {
	for i := range steps {
		n, block := f.build(&steps[i])
		head, hash := f.best, cmp.Or(f.resting, f.best.hash)
		moves := best && i == len(steps)-1
		if moves {
			head, hash = n, n.hash
		}
		if err := to.Import(ctx, block, hash); err != nil {
			return fmt.Errorf("%w: block %s: %w", errSink, block.Hash, err)
		}
		f.mu.Lock()
		f.nodes[n.hash], f.best = n, head
		if moves {
			f.resting = jamq.HeaderHash{}
		}
		f.mu.Unlock()
	}
	return nil
}

// makeBest goes back, or over, to a block that was delivered before.
func (f *Feed) makeBest(ctx context.Context, to submit.ChainSink, n *node) error {
	if n.height < f.finalized.height {
		return nil // the node was slower than its own finality
	}
	block := jamq.Block{Hash: n.hash, Slot: n.slot, AccumulatedKnown: true}
	if n.parent != nil {
		block.Parent = n.parent.hash
	}
	if err := to.Import(ctx, block, n.hash); err != nil { // known: only the head counts
		return fmt.Errorf("%w: best block %s: %w", errSink, n.hash, err)
	}
	f.mu.Lock()
	f.best, f.resting = n, jamq.HeaderHash{}
	f.mu.Unlock()
	return nil
}

// build makes the block that a queue sees, which speaks of the rollup's own packages only.
func (f *Feed) build(s *step) (*node, jamq.Block) {
	parent := f.nodes[s.parent]
	n := &node{hash: jamq.HeaderHash(s.HeaderHash), slot: s.Slot, height: parent.height + 1, parent: parent, fates: make(map[jamq.PackageHash]fate, len(s.answers))}
	block := jamq.Block{Hash: n.hash, Parent: parent.hash, Slot: n.slot, AccumulatedKnown: true}
	packages := f.packages()
	order := slices.SortedFunc(maps.Keys(s.answers), jamq.PackageHash.Compare)
	for _, pkg := range order {
		before := parent.fates[pkg]
		after, does := before.next(&f.spec, n.slot, s.answers[pkg])
		n.fates[pkg] = after
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

// makeRoom resolves a contradiction: a core that is reported on was free before, so whatever a slow status still says is on it has become
// available. It also keeps two reports of one block from one core.
func (f *Feed) makeRoom(n *node, block *jamq.Block, order []jamq.PackageHash) {
	busy := make(map[jamq.CoreIndex]jamq.PackageHash)
	block.Reported = slices.DeleteFunc(block.Reported, func(r jamq.Report) bool {
		if _, twice := busy[r.Core]; twice {
			delete(n.fates, r.Package) // as if not seen yet: the next block shows it
			return true
		}
		busy[r.Core] = r.Package
		return false
	})
	for _, pkg := range order {
		at := n.fates[pkg]
		if by, taken := busy[at.core]; taken && by != pkg && at.stage == onCore {
			n.fates[pkg] = fate{stage: available, core: at.core, since: n.slot}
			block.Available = append(block.Available, at.core)
		}
	}
}

// finalize passes finality on and lets go of what cannot matter any more.
func (f *Feed) finalize(ctx context.Context, to submit.ChainSink, hash jamq.HeaderHash) error {
	n := f.nodes[hash]
	if n == nil || n.height <= f.finalized.height {
		return nil // older than all that is kept
	}
	for at := n; at != f.finalized; at = at.parent {
		if at == nil || at.height <= f.finalized.height {
			return fmt.Errorf("%w: the node finalized %s, which does not descend from the finalized %s", ErrHistoryLost, hash, f.finalized.hash)
		}
	}
	if err := to.Finalize(ctx, hash); err != nil {
		return fmt.Errorf("%w: finalized block %s: %w", errSink, hash, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.finalized = n
	if !f.descends(f.best, n) {
		f.best = n
	}
	f.prune()
	return nil
}

// descends reports whether a block is below an ancestor or the same.
func (f *Feed) descends(n, ancestor *node) bool {
	for n != nil && n.height > ancestor.height {
		n = n.parent
	}
	return n == ancestor
}

// prune forgets forks that lost, final blocks that can be no anchor any more, and packages whose fate is final.
func (f *Feed) prune() {
	keep := uint64(f.spec.RecentHistory) + 1
	for hash, n := range f.nodes {
		switch {
		case n.height+keep < f.finalized.height, !f.descends(n, f.finalized) && !f.descends(f.finalized, n):
			delete(f.nodes, hash)
		case n.height+keep == f.finalized.height:
			n.parent = nil
		}
	}
	for pkg, w := range f.watched {
		if w.anchor == nil { // delivered after it was watched, perhaps
			w.anchor = f.nodes[w.context.Anchor]
			f.watched[pkg] = w
		}
		at := f.finalized.fates[pkg]
		if at.settled(&f.spec, f.finalized.slot) || at.stage == unseen && f.expired(&w) {
			delete(f.watched, pkg)
		}
	}
}

// expired reports whether no block after the finalized one can report a package: its anchor is too old by then, or, where the anchor is not known, its
// lookup anchor is.
func (f *Feed) expired(w *watched) bool {
	if w.anchor != nil {
		return f.finalized.height >= w.anchor.height+uint64(f.spec.RecentHistory)
	}
	return f.finalized.slot >= w.context.LookupAnchorSlot.Add(f.spec.MaxLookupAnchorAge)
}

// ascending returns hashes as an encoded context has them.
func ascending(hashes []jamq.PackageHash) []jamq.PackageHash {
	out := slices.Clone(hashes)
	slices.SortFunc(out, func(a, b jamq.PackageHash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(out)
}
