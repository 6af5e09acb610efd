package jip2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/internal/headers"
)

// step is a block that will be delivered.
type step struct {
	BlockDescriptor
	parent  jamq.HeaderHash
	answers map[jamq.PackageHash]*answer // nil if the node has none
}

// fetch walks from head back to the first delivered block. It returns the
// blocks in between, oldest first, with the node's answers for each. If the
// connection breaks, a later call continues with the blocks and answers that
// were already fetched. This is correct because a block's parent and state do
// not change, and a package that is watched later is in none of these blocks.
// The error wraps feed.ErrExcludes if the way has passed the finalized block.
func (f *Feed) fetch(ctx context.Context, head BlockDescriptor, apart *apart) ([]step, error) {
	if err := headers.CheckAhead(f.clock, time.Now(), head.Slot); err != nil {
		return nil, fmt.Errorf("%w: head %s: %w", ErrMalformed, jamq.HeaderHash(head.HeaderHash), err)
	}
	if err := f.checkBehind(head); err != nil {
		apart.end()
		return nil, err
	}
	f.mu.Lock()
	if len(f.learned) > f.cfg.MaxGap { // most are of heads that the node has given up
		clear(f.learned)
	}
	f.mu.Unlock()
	var steps []step
	at := head
	for f.tree.Get(jamq.HeaderHash(at.HeaderHash)) == nil {
		switch {
		case f.tree.Misses(jamq.HeaderHash(at.HeaderHash), at.Slot):
			return nil, f.chain().Exclude(jamq.HeaderHash(head.HeaderHash), head.Slot)
		case len(steps) >= f.cfg.MaxGap:
			return nil, fmt.Errorf("%w: block %s of slot %d, %d blocks before %s, is newer than the delivered ones", ErrHistoryLost, jamq.HeaderHash(at.HeaderHash), at.Slot, len(steps), jamq.HeaderHash(head.HeaderHash))
		}
		parent, err := f.parent(ctx, at)
		if e := new(Error); errors.As(err, &e) {
			return nil, f.unconnected(apart, at, err)
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, step{BlockDescriptor: at, parent: jamq.HeaderHash(parent.HeaderHash)})
		at = parent
	}
	apart.end()
	if len(steps) > 0 && f.tree.Misses(jamq.HeaderHash(at.HeaderHash), at.Slot) {
		return nil, f.chain().Exclude(jamq.HeaderHash(head.HeaderHash), head.Slot)
	}
	slices.Reverse(steps)
	packages := f.packages()
	if err := f.learnAll(ctx, steps, packages); err != nil {
		return nil, err
	}
	infer(steps, packages)
	return steps, nil
}

// checkBehind returns an error if a head was not delivered although it is not newer
// than the finalized block.
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

// patience is the time for which the node's chain may contradict the delivered blocks.
func (f *Feed) patience() time.Duration {
	return time.Duration(f.cfg.LostAfter) * f.spec.SlotDuration
}

// apart is a chain whose oldest block is not connected to the delivered ones. While
// the node still fetches old blocks, its oldest block becomes older, and the feed
// waits on.
type apart struct {
	oldest jamq.Slot
	lasts  feed.Contradiction
}

// end notes that the chain is connected.
func (a *apart) end() { *a = apart{} }

// unconnected returns the error for a block whose parent the node does not have. If it
// has got no older block for the time of f.patience, the error wraps ErrHistoryLost:
// the node follows another chain, or has pruned the blocks for good.
func (f *Feed) unconnected(a *apart, oldest BlockDescriptor, err error) error {
	if oldest.Slot < a.oldest {
		a.end()
	}
	a.oldest = oldest.Slot
	final := f.tree.Finalized()
	return a.lasts.Note(ErrHistoryLost, f.patience(), fmt.Errorf("block %s of slot %d is not connected to the delivered blocks since %s of slot %d, and the node does not have its parent; the node has pruned too much or follows another chain: %w",
		jamq.HeaderHash(oldest.HeaderHash), oldest.Slot, final.Hash, final.Slot, err))
}

// learnAll sets the node's answers for blocks. After a failure it begins no further block.
// The answers that it has got are kept for the next call.
func (f *Feed) learnAll(ctx context.Context, steps []step, packages map[jamq.PackageHash]watched) error {
	learning, going := errgroup.WithContext(ctx)
	learning.SetLimit(f.blocksAtOnce())
	for i := range steps {
		learning.Go(func() error {
			if going.Err() != nil {
				return going.Err()
			}
			return f.learnAnswers(ctx, &steps[i], packages, i == len(steps)-1)
		})
	}
	return learning.Wait()
}

// blocksAtOnce returns the number of blocks about whose packages the feed asks at once. One
// is enough if answers arrive quickly, and a connection that breaks then loses the fewest
// answers. If they arrive slowly, the feed must ask for more blocks than the chain grows by
// meanwhile.
func (f *Feed) blocksAtOnce() int {
	const perAnswer, most = 8, 32
	return min(1+int(perAnswer*f.client.answerTime()/f.spec.SlotDuration), most)
}

// learnAnswers sets the node's answers for a block. It leaves them nil if the
// node has none, which is an error for the head only. The code does not matter:
// JIP-2 has code 1 for a state that was pruned, and some nodes send others.
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

// learned is the information that was fetched about a block that is not
// delivered yet.
type learned struct {
	slot    jamq.Slot
	parent  BlockDescriptor // or err; set when asked is closed
	err     error
	asked   chan struct{}
	answers map[jamq.PackageHash]*answer
}

// parent returns the parent of a block. It asks the node only once, and again after an
// error. It is safe for concurrent use.
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
		known.parent, known.err = f.client.Parent(ctx, hash)
		if known.err != nil {
			f.mu.Lock()
			delete(f.learned, hash)
			f.mu.Unlock()
		}
		close(known.asked)
	}
	<-known.asked
	// Slots that descend also end a walk through blocks in a circle.
	if known.err == nil && known.parent.Slot >= of.Slot {
		f.mu.Lock()
		clear(f.learned) // one of the answers was wrong
		f.mu.Unlock()
		return known.parent, fmt.Errorf("%w: block %s of slot %d has a parent of slot %d", ErrMalformed, hash, of.Slot, known.parent.Slot)
	}
	return known.parent, known.err
}

// isNew reports whether nothing is known of a block yet that is newer than the finalized
// one, and whether there is room to learn of it.
func (f *Feed) isNew(block BlockDescriptor) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	hash := jamq.HeaderHash(block.HeaderHash)
	return f.learned[hash] == nil && f.tree.Get(hash) == nil && block.Slot > f.tree.Finalized().Slot && len(f.learned) < f.cfg.MaxGap
}

// noteNamed notes a best block that the node has named.
func (f *Feed) noteNamed(best BlockDescriptor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.named = best
}

// packages returns a copy of the watched packages. A package that is watched
// later has not been sent yet, so the blocks that are being fetched cannot
// contain it.
func (f *Feed) packages() map[jamq.PackageHash]watched {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.watched)
}

// maxAsking is the maximum number of concurrent calls.
const maxAsking = 8

// ask returns the node's answer for each package after a block.
func (f *Feed) ask(ctx context.Context, block jamq.HeaderHash, packages map[jamq.PackageHash]watched) (map[jamq.PackageHash]*answer, error) {
	answers := make(map[jamq.PackageHash]*answer, len(packages))
	var mu sync.Mutex
	var asking errgroup.Group
	asking.SetLimit(maxAsking)
	for pkg, w := range packages {
		asking.Go(func() error {
			a, err := f.askOne(ctx, block, pkg, w)
			mu.Lock()
			defer mu.Unlock()
			answers[pkg] = a
			return err
		})
	}
	return answers, asking.Wait()
}

// askOne requests the status of one package, and the service's value at once. The value
// counts if the package has been reported: a node may forget an accumulated package and
// answer Failed, but the service does not forget it.
func (f *Feed) askOne(ctx context.Context, block jamq.HeaderHash, pkg jamq.PackageHash, w watched) (*answer, error) {
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

// infer fills in answers that the node could not give for older blocks. It
// derives each from the next block with answers, which the last block has.
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
