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

// fetch returns the blocks from the delivered ones to head, with the node's
// answers.
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
	// Go from the head back, from parent to parent, to a block that was delivered before.
	// Parents that the node has already named are not requested again.
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
	if err := f.confirm(ctx, steps, packages); err != nil {
		return nil, err
	}
	infer(steps, packages)
	return steps, nil
}

// exclude returns the error for a head whose chain excludes the finalized block.
func (f *Feed) exclude(head BlockDescriptor) error {
	f.mu.Lock()
	// A wrong answer about one parent could also be the cause. Forget all answers, so that the
	// next attempt asks for every parent again.
	clear(f.learned)
	f.mu.Unlock()
	return f.chain().Exclude(jamq.HeaderHash(head.HeaderHash), head.Slot)
}

// forget removes the node's answers about a block, so that they are requested
// again.
func (f *Feed) forget(block BlockDescriptor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.learned, jamq.HeaderHash(block.HeaderHash))
}

// checkBehind returns an error for an unknown head that is not newer than finality.
func (f *Feed) checkBehind(head BlockDescriptor) error {
	hash, final := jamq.HeaderHash(head.HeaderHash), f.tree.Finalized()
	switch {
	case f.tree.Get(hash) != nil, head.Slot > final.Slot:
		return nil
	case f.tree.Excludes(hash, head.Slot):
		// The node follows a chain without the finalized block.
		return f.chain().Exclude(hash, head.Slot)
	}
	return fmt.Errorf("the node is behind: its head %s is of slot %d, and the finalized block %s of slot %d", hash, head.Slot, final.Hash, final.Slot)
}

// unconnected returns the error if the node does not have the parent of oldest.
func (f *Feed) unconnected(oldest BlockDescriptor, err error) error {
	if oldest.Slot < f.oldest {
		// While a node synchronizes, it gets older blocks little by little. That the oldest one
		// is older than before is progress, so the wait begins again.
		f.agree()
	}
	if f.oldest == 0 {
		f.oldest = oldest.Slot
	}
	final := f.tree.Finalized()
	return fmt.Errorf("%w: block %s of slot %d is not connected to the delivered blocks since %s of slot %d, and the node does not have its parent; the node has pruned too much or follows another chain: %w",
		feed.ErrApart, jamq.HeaderHash(oldest.HeaderHash), oldest.Slot, final.Hash, final.Slot, err)
}

// checkSlot returns an error if a delivered block now has another slot.
func (f *Feed) checkSlot(b BlockDescriptor) error {
	n := f.tree.Get(jamq.HeaderHash(b.HeaderHash))
	if n == nil || n.Slot == b.Slot {
		return nil
	}
	// The sink could not correct the slot.
	return fmt.Errorf("%w: block %s of slot %d was delivered with slot %d", feed.ErrApart, n.Hash, b.Slot, n.Slot)
}

// learnAll fetches the node's answers about the packages for each of the blocks.
func (f *Feed) learnAll(ctx context.Context, steps []step, packages map[jamq.PackageHash]watched) error {
	// If one request fails, the answers about the other blocks are kept, and the next call
	// asks only for the rest.
	return someAtOnce(len(steps), f.blocksAtOnce, func(i int) error {
		return f.learnAnswers(ctx, &steps[i], packages, i == len(steps)-1)
	})
}

// someAtOnce calls do for the numbers 0 to n-1 in groups of concurrent calls.
func someAtOnce(n int, atOnce func() int, do func(i int) error) error {
	for begin := 0; begin < n; {
		var group errgroup.Group
		// The slower the node has answered so far, the more requests run at the same time.
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

// blocksAtOnce returns for how many blocks the feed requests answers at once.
func (f *Feed) blocksAtOnce() int {
	const perAnswer, most = 8, 32
	// If the node answers slowly, the feed must work on more blocks than the chain
	// grows by in the meantime, because otherwise it would never catch up.
	return min(1+int(perAnswer*f.answerTime()/f.spec.SlotDuration), most)
}

// answerTime returns how long the last request took.
func (f *Feed) answerTime() time.Duration {
	// Some nodes are slow only with answers about packages.
	return max(f.client.answerTime(), time.Duration(f.asked.Load()))
}

// learnAnswers fetches the node's answers about the packages after one block.
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
	// The answers for an older block can be derived from a newer one, but there is no block
	// after the head. So this failure counts.
	case errors.As(err, &refused) && isHead:
		return fmt.Errorf("the node does not have the state of its head %s of slot %d: %w", hash, s.Slot, err)
	// The node has dropped the state of this block, and infer derives the answers from later
	// blocks. JIP-2 has code 1 for this case, but some nodes use other codes.
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
func (f *Feed) parent(ctx context.Context, of BlockDescriptor) (BlockDescriptor, error) {
	hash := jamq.HeaderHash(of.HeaderHash)
	f.mu.Lock()
	known := f.learned[hash]
	// Concurrent and later calls for the same block share these requests.
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
	// A parent must have a lower slot than its child. This check also keeps answers that form
	// a circle from being followed forever.
	if known.err == nil && known.parent.Slot >= of.Slot {
		f.mu.Lock()
		clear(f.learned) // one of the answers was wrong
		f.mu.Unlock()
		return known.parent, fmt.Errorf("%w: block %s of slot %d has a parent of slot %d", ErrMalformed, hash, of.Slot, known.parent.Slot)
	}
	return known.parent, known.err
}

// askParent requests the parent of a block until two answers agree.
func (f *Feed) askParent(ctx context.Context, of jamq.HeaderHash) (BlockDescriptor, error) {
	parent, err := agreed(ctx, f.loop.NoteContradiction, false, func(ctx context.Context) (BlockDescriptor, error) { return f.client.Parent(ctx, of) })
	// Some nodes answer with a hash of zeros if a block has no parent.
	if err == nil && parent.HeaderHash == (Hash{}) {
		err = &Error{Code: CodeBlockUnavailable, Message: "the parent is the block of zeros"}
	}
	return parent, err
}

// isNew reports whether the feed should fetch the ancestors of a block in advance.
func (f *Feed) isNew(block BlockDescriptor) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	hash := jamq.HeaderHash(block.HeaderHash)
	return f.learned[hash] == nil && f.tree.Get(hash) == nil && block.Slot > f.tree.Finalized().Slot && len(f.learned) < f.cfg.MaxGap
}

// noteNamed records the best block that the node has named most recently.
func (f *Feed) noteNamed(best BlockDescriptor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Health computes from this block how far the feed is behind.
	f.named = best
}

// packages returns a copy of the watched packages for a fetch of blocks.
func (f *Feed) packages() map[jamq.PackageHash]watched {
	f.mu.Lock()
	defer f.mu.Unlock()
	// A copy is enough: a package that is watched from now on is sent later, so these blocks
	// cannot contain it.
	return maps.Clone(f.watched)
}

// packagesAtOnce returns about how many packages the feed asks at the same time.
func (f *Feed) packagesAtOnce() int {
	const perBlock = 8
	return perBlock * f.blocksAtOnce()
}

// ask requests the node's answer about each package after a block.
func (f *Feed) ask(ctx context.Context, block jamq.HeaderHash, packages map[jamq.PackageHash]watched) (map[jamq.PackageHash]*answer, error) {
	order := slices.Collect(maps.Keys(packages))
	answers := make([]*answer, len(order))
	err := someAtOnce(len(order), f.packagesAtOnce, func(i int) (err error) {
		answers[i], err = f.askOne(ctx, block, order[i], packages[order[i]])
		return err
	})
	out := make(map[jamq.PackageHash]*answer, len(order))
	for i, pkg := range order {
		out[pkg] = answers[i]
	}
	return out, err
}

// askOne requests a package's status, and the service's value that shows
// accumulation.
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
	// If the node answers that the package can still be reported, the service cannot have
	// accumulated it. In all other cases the service's value decides, because a node may
	// forget a package and answer Failed, but the service does not forget.
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

// infer fills in the answers that the node could not give for older blocks.
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
	// The answers for a block follow from those for the block after it. Begin with the newest
	// blocks, because the head always has answers.
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
