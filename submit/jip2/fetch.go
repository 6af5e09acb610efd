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
	if len(f.learned) > f.cfg.MaxGap { // most are of heads that the node has given up
		clear(f.learned)
	}
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
	for i := range steps {
		if err := f.learnAnswers(ctx, &steps[i], packages, i == len(steps)-1); err != nil {
			return nil, err
		}
	}
	infer(steps, packages)
	clear(f.learned)
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

// learnAnswers sets the node's answers for a block. It leaves them nil if the
// node has none, which is an error for the head only. The code does not matter:
// JIP-2 has code 1 for a state that was pruned, and some nodes send others.
func (f *Feed) learnAnswers(ctx context.Context, s *step, packages map[jamq.PackageHash]watched, isHead bool) error {
	hash := jamq.HeaderHash(s.HeaderHash)
	known := f.learned[hash]
	if known.answers == nil {
		answers, err := f.ask(ctx, hash, packages)
		switch refused := new(Error); {
		case errors.As(err, &refused) && isHead:
			return fmt.Errorf("the node does not have the state of its head %s of slot %d: %w", hash, s.Slot, err)
		case errors.As(err, &refused):
			return nil
		case err != nil:
			return err
		}
		known.answers = answers
		f.learned[hash] = known
	}
	s.answers = known.answers
	return nil
}

// learned is the information that was fetched about a block that is not
// delivered yet.
type learned struct {
	parent  BlockDescriptor
	answers map[jamq.PackageHash]*answer
}

// parent returns the parent of a block. It asks the node only once.
func (f *Feed) parent(ctx context.Context, of BlockDescriptor) (BlockDescriptor, error) {
	hash := jamq.HeaderHash(of.HeaderHash)
	known, ok := f.learned[hash]
	if !ok {
		var err error
		if known.parent, err = f.client.Parent(ctx, hash); err != nil {
			return known.parent, err
		}
	}
	// Slots that descend also end a walk through blocks in a circle.
	if known.parent.Slot >= of.Slot {
		clear(f.learned) // one of the answers was wrong
		return known.parent, fmt.Errorf("%w: block %s of slot %d has a parent of slot %d", ErrMalformed, hash, of.Slot, known.parent.Slot)
	}
	f.learned[hash] = known
	return known.parent, nil
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

// askOne requests the status of one package. If the package has been reported,
// it also requests the service's value: a node may forget an accumulated
// package and answer Failed, but the service does not forget it.
func (f *Feed) askOne(ctx context.Context, block jamq.HeaderHash, pkg jamq.PackageHash, w watched) (*answer, error) {
	status, err := f.client.WorkPackageStatus(ctx, block, pkg, w.context.Anchor)
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
	value, err := f.client.ServiceValue(ctx, block, f.cfg.Service.ID, f.cfg.Service.Key(pkg))
	if err != nil {
		return nil, err
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
