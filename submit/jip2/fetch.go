package jip2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/internal/headers"
)

// step is a fetched block that the feed will deliver to the sink.
type step struct {
	BlockDescriptor
	parent  jamq.HeaderHash
	answers map[jamq.PackageHash]*answer // nil if the node could not answer
}

// fetch walks from head back to the first block that was already delivered. It
// returns the blocks in between, oldest first, each with the node's answers
// about the watched packages. The error wraps feed.ErrApart if the chain of
// head does not continue the delivered blocks.
//
// If the connection breaks, the next call continues with the blocks and answers
// that were already fetched. Keeping them is safe, because the parent and the
// state of a block do not change, and a package that is watched later cannot be
// in any of these blocks.
func (f *Feed) fetch(ctx context.Context, head BlockDescriptor) ([]step, error) {
	if err := headers.CheckAhead(f.clock, time.Now(), head.Slot); err != nil {
		return nil, fmt.Errorf("%w: head %s: %w", ErrMalformed, jamq.HeaderHash(head.HeaderHash), err)
	}
	if err := f.checkBehind(head); err != nil {
		return nil, err
	}
	f.mu.Lock()
	if len(f.learned) > f.cfg.MaxGap { // most belong to heads that the node has given up
		clear(f.learned)
	}
	f.mu.Unlock()
	var steps []step
	at := head
	for f.tree.Get(jamq.HeaderHash(at.HeaderHash)) == nil {
		switch {
		case f.tree.Misses(jamq.HeaderHash(at.HeaderHash), at.Slot):
			return nil, f.exclude(head)
		case len(steps) >= f.cfg.MaxGap:
			return nil, fmt.Errorf("%w: block %s of slot %d, %d blocks before %s, is newer than the delivered ones", ErrHistoryLost, jamq.HeaderHash(at.HeaderHash), at.Slot, len(steps), jamq.HeaderHash(head.HeaderHash))
		}
		parent, err := f.parent(ctx, at)
		if e := new(Error); errors.As(err, &e) {
			if n := len(steps); n > 0 {
				f.forget(steps[n-1].BlockDescriptor)
			}
			return nil, f.unconnected(at, err)
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, step{BlockDescriptor: at, parent: jamq.HeaderHash(parent.HeaderHash)})
		at = parent
	}
	if err := f.checkSlot(at); err != nil {
		return nil, err
	}
	if len(steps) > 0 && f.tree.Misses(jamq.HeaderHash(at.HeaderHash), at.Slot) {
		return nil, f.exclude(head)
	}
	slices.Reverse(steps)
	packages := f.packages()
	if err := f.learnAll(ctx, steps, packages); err != nil {
		return nil, err
	}
	infer(steps, packages)
	return steps, nil
}

// exclude returns the error for a head whose chain does not contain the finalized
// block. Because a single wrong parent would also lead to such a chain, exclude
// forgets the parents of all blocks that are not delivered yet. The next attempt
// then requests them again.
func (f *Feed) exclude(head BlockDescriptor) error {
	f.mu.Lock()
	clear(f.learned)
	f.mu.Unlock()
	return f.chain().Exclude(jamq.HeaderHash(head.HeaderHash), head.Slot)
}

// forget removes the node's answers about a block, so that the feed requests
// them again.
func (f *Feed) forget(block BlockDescriptor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.learned, jamq.HeaderHash(block.HeaderHash))
}

// checkBehind returns an error if the node's head is an unknown block that is
// not newer than the finalized block. Either the node is behind, or it follows
// a chain without the finalized block.
func (f *Feed) checkBehind(head BlockDescriptor) error {
	hash, final := jamq.HeaderHash(head.HeaderHash), f.tree.Finalized()
	switch {
	case f.tree.Get(hash) != nil, head.Slot > final.Slot:
		return nil
	case f.tree.Excludes(hash, head.Slot):
		return f.chain().Exclude(hash, head.Slot)
	}
	return fmt.Errorf("the node is behind: its head %s is of slot %d, and the finalized block %s of slot %d", hash, head.Slot, final.Hash, final.Slot)
}

// unconnected returns the error for a block whose ancestors the feed cannot fetch
// down to a delivered block, because the node does not have the parent of oldest.
// Either the node follows another chain, or it has pruned blocks, or it is still
// synchronizing. A node that synchronizes obtains older blocks over time, so the
// time until FeedConfig.LostAfter begins again whenever the feed has reached an
// older block.
func (f *Feed) unconnected(oldest BlockDescriptor, err error) error {
	if oldest.Slot < f.oldest {
		f.agree()
	}
	if f.oldest == 0 {
		f.oldest = oldest.Slot
	}
	final := f.tree.Finalized()
	return fmt.Errorf("%w: block %s of slot %d is not connected to the delivered blocks since %s of slot %d, and the node does not have its parent; the node has pruned too much or follows another chain: %w",
		feed.ErrApart, jamq.HeaderHash(oldest.HeaderHash), oldest.Slot, final.Hash, final.Slot, err)
}

// checkSlot returns an error if the node now names a block's slot differently than
// when the block was delivered, because the sink could not correct the slot.
func (f *Feed) checkSlot(b BlockDescriptor) error {
	n := f.tree.Get(jamq.HeaderHash(b.HeaderHash))
	if n == nil || n.Slot == b.Slot {
		return nil
	}
	return fmt.Errorf("%w: block %s of slot %d was delivered with slot %d", feed.ErrApart, n.Hash, b.Slot, n.Slot)
}

// learnAll fetches the node's answers about the packages for each of the given
// blocks. If a request fails, the answers for the other blocks are kept, and the
// next call does not request them again.
func (f *Feed) learnAll(ctx context.Context, steps []step, packages map[jamq.PackageHash]watched) error {
	return someAtOnce(len(steps), f.blocksAtOnce, func(i int) error {
		return f.learnAnswers(ctx, &steps[i], packages, i == len(steps)-1)
	})
}

// someAtOnce calls do for the numbers 0 to n-1 in groups. The calls of a group
// run concurrently, and the next group begins when all of them have returned.
// atOnce returns the size of the next group, which depends on how fast the node
// has answered so far. After an error no further group begins.
func someAtOnce(n int, atOnce func() int, do func(i int) error) error {
	for begin := 0; begin < n; {
		var group errgroup.Group
		end := min(begin+atOnce(), n)
		for i := begin; i < end; i++ {
			group.Go(func() error { return do(i) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

// blocksAtOnce returns for how many blocks the feed requests answers at the
// same time. If the node answers quickly, one block is enough, and fewer
// answers are lost if the connection breaks. If the node answers slowly, the
// feed must work on more blocks than the chain grows by in the meantime,
// because otherwise it would never catch up.
func (f *Feed) blocksAtOnce() int {
	const perAnswer, most = 8, 32
	return min(1+int(perAnswer*f.answerTime()/f.spec.SlotDuration), most)
}

// answerTime returns how long the last request took, or the last answer about a
// package if that took longer, because some nodes are slow only with such
// answers.
func (f *Feed) answerTime() time.Duration {
	return max(f.client.answerTime(), time.Duration(f.asked.Load()))
}

// learnAnswers fetches the node's answers about the packages after one block.
// If the node refuses, because it no longer has the state of the block, the
// answers stay nil, and infer derives them later. A refusal for the head is an
// error, because there is no later block to derive its answers from. Any error
// code counts as a refusal: JIP-2 uses code 1 for a pruned state, but some
// nodes send others.
func (f *Feed) learnAnswers(ctx context.Context, s *step, packages map[jamq.PackageHash]watched, isHead bool) error {
	hash := jamq.HeaderHash(s.HeaderHash)
	f.mu.Lock()
	known := f.learned[hash]
	if known != nil {
		s.answers = known.answers
	}
	f.mu.Unlock()
	if s.answers != nil {
		return nil
	}
	answers, err := f.ask(ctx, hash, packages)
	switch refused := new(Error); {
	case errors.As(err, &refused) && isHead:
		return fmt.Errorf("the node does not have the state of its head %s of slot %d: %w", hash, s.Slot, err)
	case errors.As(err, &refused):
		return nil
	case err != nil:
		return err
	}
	s.answers = answers
	f.mu.Lock()
	defer f.mu.Unlock()
	if known != nil {
		known.answers = answers
	}
	return nil
}

// learned has the answers of the node about a block that is not delivered yet.
// If the feed fails to reach this block, a later attempt uses these answers
// instead of asking the node again.
type learned struct {
	slot    jamq.Slot
	parent  BlockDescriptor // valid when asked is closed, unless err is set
	err     error
	asked   chan struct{}
	answers map[jamq.PackageHash]*answer
}

// parent returns the parent of a block, on which two answers must agree.
// Concurrent and later calls for the same block share these requests; only
// after an error is the node asked again. parent is safe for concurrent use.
func (f *Feed) parent(ctx context.Context, of BlockDescriptor) (BlockDescriptor, error) {
	hash := jamq.HeaderHash(of.HeaderHash)
	f.mu.Lock()
	known := f.learned[hash]
	first := known == nil
	if first {
		known = &learned{slot: of.Slot, asked: make(chan struct{})}
		f.learned[hash] = known
	}
	f.mu.Unlock()
	if first {
		known.parent, known.err = f.askParent(ctx, hash)
		if known.err != nil {
			f.forget(of)
		}
		close(known.asked)
	}
	<-known.asked
	// Because slots must descend, the walk also ends if the node's answers form
	// a circle.
	if known.err == nil && known.parent.Slot >= of.Slot {
		f.mu.Lock()
		clear(f.learned) // one of the answers was wrong
		f.mu.Unlock()
		return known.parent, fmt.Errorf("%w: block %s of slot %d has a parent of slot %d", ErrMalformed, hash, of.Slot, known.parent.Slot)
	}
	return known.parent, known.err
}

// askParent requests the parent of a block until two answers agree. If the node
// answers with a hash of zeros, the block has no parent, and askParent returns
// an error.
func (f *Feed) askParent(ctx context.Context, of jamq.HeaderHash) (BlockDescriptor, error) {
	parent, err := agreed(ctx, f.loop.NoteContradiction, false, func(ctx context.Context) (BlockDescriptor, error) { return f.client.Parent(ctx, of) })
	if err == nil && parent.HeaderHash == (Hash{}) {
		err = &Error{Code: CodeBlockUnavailable, Message: "the parent is the block of zeros"}
	}
	return parent, err
}

// isNew reports whether the feed should fetch the ancestors of a block in advance:
// the block is newer than the finalized one, the node's answer about it is not
// known yet, and there is room for more answers.
func (f *Feed) isNew(block BlockDescriptor) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	hash := jamq.HeaderHash(block.HeaderHash)
	return f.learned[hash] == nil && f.tree.Get(hash) == nil && block.Slot > f.tree.Finalized().Slot && len(f.learned) < f.cfg.MaxGap
}

// noteNamed records the best block that the node has named most recently.
// Health computes from this block how far the feed is behind.
func (f *Feed) noteNamed(best BlockDescriptor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.named = best
}

// packages returns a copy of the watched packages for a fetch of blocks. A package
// that is watched later was not sent yet, so it cannot be in these blocks.
func (f *Feed) packages() map[jamq.PackageHash]watched {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.watched)
}

// ask requests the node's answer about each package after a block. It requests
// about eight packages at the same time, or more if the node answers slowly.
func (f *Feed) ask(ctx context.Context, block jamq.HeaderHash, packages map[jamq.PackageHash]watched) (map[jamq.PackageHash]*answer, error) {
	const packagesAtOnce = 8
	order := slices.Collect(maps.Keys(packages))
	answers := make([]*answer, len(order))
	err := someAtOnce(len(order), func() int { return packagesAtOnce * f.blocksAtOnce() }, func(i int) (err error) {
		answers[i], err = f.askOne(ctx, block, order[i], packages[order[i]])
		return err
	})
	out := make(map[jamq.PackageHash]*answer, len(order))
	for i, pkg := range order {
		out[pkg] = answers[i]
	}
	return out, err
}

// askOne requests the status of a package and, at the same time, the value in
// the service's storage that shows accumulation. It ignores the value while the
// status is Reportable. In every other case the value counts, even if the
// status is Failed: a node may forget an accumulated package and then answer
// Failed, but the service does not forget it.
func (f *Feed) askOne(ctx context.Context, block jamq.HeaderHash, pkg jamq.PackageHash, w watched) (*answer, error) {
	began := time.Now()
	defer func() { f.asked.Store(int64(time.Since(began))) }()
	var asking errgroup.Group
	var value []byte
	asking.Go(func() (err error) {
		value, err = f.client.ServiceValue(ctx, block, f.cfg.Service.ID, f.cfg.Service.Key(pkg))
		return err
	})
	status, err := f.client.WorkPackageStatus(ctx, block, pkg, w.context.Anchor)
	lacking := asking.Wait()
	if err != nil {
		return nil, err
	}
	if r := status.report(); r != nil && int(r.Core) >= f.spec.Cores {
		return nil, fmt.Errorf("%w: package %s on core %d, want below %d", ErrMalformed, pkg, r.Core, f.spec.Cores)
	}
	if n := len(w.context.Prerequisites); status.report() != nil && n > f.spec.MaxDependencies {
		return nil, fmt.Errorf("%w: package %s with %d prerequisites is reported, want at most %d", ErrMalformed, pkg, n, f.spec.MaxDependencies)
	}
	if status.Failed != nil { // no reason, because the node chooses its length
		status.Failed = new(string)
	}
	a := &answer{status: status}
	if status.Reportable != nil {
		return a, nil
	}
	if lacking != nil {
		return nil, lacking
	}
	if a.taken, err = f.cfg.Service.Taken(pkg, value); err != nil {
		return nil, fmt.Errorf("%w: the service's value for package %s: %w", ErrMalformed, pkg, err)
	}
	return a, nil
}

// infer fills in the answers that the node could not give for older blocks. It
// derives them from the answers for the block that follows, beginning with the
// newest block, which always has answers.
func infer(steps []step, packages map[jamq.PackageHash]watched) {
	if len(packages) == 0 {
		return
	}
	positions := make(map[jamq.HeaderHash]int, len(steps))
	for i := range steps {
		positions[jamq.HeaderHash(steps[i].HeaderHash)] = i
	}
	position := func(h jamq.HeaderHash) (int, bool) {
		i, ok := positions[h]
		return i, ok
	}
	for i := len(steps) - 2; i >= 0; i-- {
		if steps[i].answers != nil {
			continue
		}
		steps[i].answers = make(map[jamq.PackageHash]*answer, len(packages))
		for pkg, later := range steps[i+1].answers {
			a := later.earlier(i, position)
			steps[i].answers[pkg] = &a
		}
	}
}
