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
	var why repeated
	for {
		err := f.catchUp(ctx, to)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errSink), errors.Is(err, ErrHistoryLost), errors.Is(err, ErrClosed):
			return err
		case err != nil:
			if why.worth(err.Error()) {
				f.log.Warn("cannot follow the chain for now", "err", err)
			}
		case why.times > 0:
			f.log.Info("following the chain again")
			why = repeated{}
		}
		if !heads.wait(ctx, f.spec.SlotDuration) {
			return ctx.Err()
		}
	}
}

// repeated is what was said last, and how often it would have been.
type repeated struct {
	text  string
	times int
}

// sayAgain is how often the same must come until it is said again: what lasts comes with every head.
const sayAgain = 100

// worth reports whether something should be said now.
func (r *repeated) worth(text string) bool {
	if text != r.text {
		*r = repeated{text: text}
	}
	r.times++
	return r.times%sayAgain == 1
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
	if err := f.deliver(ctx, to, best, final); err != nil {
		return err
	}
	if err := f.deliverFinal(ctx, to, final); err != nil {
		return err
	}
	return f.finalize(ctx, to, jamq.HeaderHash(final.HeaderHash))
}

// deliver imports the way to a head, parents first, and makes it the best block. Only with the head itself anything is decided: the queue sees the
// blocks before it as a branch that is not the best. A long way is the exception: see importAll.
func (f *Feed) deliver(ctx context.Context, to submit.ChainSink, head, final BlockDescriptor) error {
	if jamq.HeaderHash(head.HeaderHash) == f.tree.Best().Hash && !f.tree.Rests() {
		return nil
	}
	steps, err := f.fetch(ctx, head)
	if err != nil {
		return err
	}
	if len(steps) == 0 { // back to a block that is known
		return f.makeBest(ctx, to, f.tree.Get(jamq.HeaderHash(head.HeaderHash)))
	}
	return f.importAll(ctx, to, steps, true, final)
}

// deliverFinal imports the way to a finalized block that is not on what was delivered as best.
func (f *Feed) deliverFinal(ctx context.Context, to submit.ChainSink, final BlockDescriptor) error {
	if f.tree.Get(jamq.HeaderHash(final.HeaderHash)) != nil || final.Slot <= f.tree.Finalized().Slot {
		return nil
	}
	steps, err := f.fetch(ctx, final)
	if err != nil {
		return err
	}
	return f.importAll(ctx, to, steps, false, final)
}

// importAll delivers blocks in order; the last becomes the best one if it is wanted. What the sink has taken is remembered, whatever comes after. Where the way is
// longer than what a queue can hold, those of its blocks that are final already are said to be so in between.
func (f *Feed) importAll(ctx context.Context, to submit.ChainSink, steps []step, best bool, final BlockDescriptor) error {
	sure := slices.IndexFunc(steps, func(s step) bool { return s.HeaderHash == final.HeaderHash }) // all up to it are; -1 if none is known to be
	for i := range steps {
		n, block := f.build(&steps[i])
		head := f.tree.BestHash()
		moves := best && i == len(steps)-1
		if moves {
			head = n.Hash
		}
		if err := to.Import(ctx, block, head); err != nil {
			return fmt.Errorf("%w: block %s: %w", errSink, block.Hash, err)
		}
		f.mu.Lock()
		f.tree.Add(n)
		if moves {
			f.tree.SetBest(n)
		}
		f.mu.Unlock()
		if i <= sure && (i+1)%f.finalEvery == 0 {
			if err := f.finalize(ctx, to, n.Hash); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeBest goes back, or over, to a block that was delivered before.
func (f *Feed) makeBest(ctx context.Context, to submit.ChainSink, n *node) error {
	if n.Height < f.tree.Finalized().Height {
		return nil // the node was slower than its own finality
	}
	block := jamq.Block{Hash: n.Hash, Slot: n.Slot, AccumulatedKnown: true}
	if n.Parent != nil {
		block.Parent = n.Parent.Hash
	}
	if err := to.Import(ctx, block, n.Hash); err != nil { // known: only the head counts
		return fmt.Errorf("%w: best block %s: %w", errSink, n.Hash, err)
	}
	f.mu.Lock()
	f.tree.SetBest(n)
	f.mu.Unlock()
	return nil
}

// build makes the block that a queue sees, which speaks of the rollup's own packages only.
func (f *Feed) build(s *step) (*node, jamq.Block) {
	parent := f.tree.Get(s.parent)
	n := parent.Child(jamq.HeaderHash(s.HeaderHash), s.Slot, make(fates, len(s.answers)))
	block := jamq.Block{Hash: n.Hash, Parent: parent.Hash, Slot: n.Slot, AccumulatedKnown: true}
	packages := f.packages()
	order := slices.SortedFunc(maps.Keys(s.answers), jamq.PackageHash.Compare)
	for _, pkg := range order {
		before := parent.Note[pkg]
		at := packages[pkg].anchor
		if at == nil { // delivered since it was watched, perhaps
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

// makeRoom resolves a contradiction: a core that is reported on was free before, so whatever a slow status still says is on it has become
// available. It also keeps two reports of one block from one core.
func (f *Feed) makeRoom(n *node, block *jamq.Block, order []jamq.PackageHash) {
	busy := make(map[jamq.CoreIndex]jamq.PackageHash)
	block.Reported = slices.DeleteFunc(block.Reported, func(r jamq.Report) bool {
		if _, twice := busy[r.Core]; twice {
			delete(n.Note, r.Package) // as if not seen yet: the next block shows it
			return true
		}
		busy[r.Core] = r.Package
		return false
	})
	for _, pkg := range order {
		at := n.Note[pkg]
		if by, taken := busy[at.core]; taken && by != pkg && at.stage == onCore {
			n.Note[pkg] = fate{stage: available, core: at.core, since: n.Slot}
			block.Available = append(block.Available, at.core)
		}
	}
}

// finalize passes finality on and lets go of what cannot matter any more.
func (f *Feed) finalize(ctx context.Context, to submit.ChainSink, hash jamq.HeaderHash) error {
	n := f.tree.Get(hash)
	if n == nil || n.Height <= f.tree.Finalized().Height {
		return nil // older than all that is kept
	}
	if final := f.tree.Finalized(); !n.Descends(final) {
		return fmt.Errorf("%w: the node finalized %s, which does not descend from the finalized %s", ErrHistoryLost, hash, final.Hash)
	}
	if err := to.Finalize(ctx, hash); err != nil {
		return fmt.Errorf("%w: finalized block %s: %w", errSink, hash, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tree.Finalize(n)
	f.settle()
	return nil
}

// settle forgets packages whose fate is final.
func (f *Feed) settle() {
	for pkg, w := range f.watched {
		if w.anchor == nil { // delivered after it was watched, perhaps
			w.anchor = f.tree.Get(w.context.Anchor)
			f.watched[pkg] = w
		}
		at := f.tree.Finalized().Note[pkg]
		if at.settled(&f.spec, f.tree.Finalized().Slot) || at.stage == unseen && f.expired(&w) {
			delete(f.watched, pkg)
		}
	}
}

// expired reports whether no block after the finalized one can report a package: its anchor is too old by then, or, where the anchor is not known, its
// lookup anchor is.
func (f *Feed) expired(w *watched) bool {
	if w.anchor != nil {
		return f.tree.Finalized().Height >= w.anchor.Height+uint64(f.spec.RecentHistory)
	}
	return f.tree.Finalized().Slot >= w.context.LookupAnchorSlot.Add(f.spec.MaxLookupAnchorAge)
}

// ascending returns hashes as an encoded context has them.
func ascending(hashes []jamq.PackageHash) []jamq.PackageHash {
	out := slices.Clone(hashes)
	slices.SortFunc(out, func(a, b jamq.PackageHash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(out)
}
