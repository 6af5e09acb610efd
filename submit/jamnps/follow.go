package jamnps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit"
)

// errSink marks what the sink refused.
var errSink = errors.New("jamnps: block not taken")

// Follow implements submit.ChainFeed. Errors other than ctx's wrap ErrHistoryLost, ErrClosed or the sink's error; what peers or connections fail in is
// tried again. Only one Follow may run at a time.
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
	following, cancel := context.WithCancel(ctx)
	var connecting sync.WaitGroup
	defer connecting.Wait()
	defer cancel()
	for _, p := range f.peers() {
		connecting.Go(func() { f.keepConnected(following, p) })
	}
	for {
		failed := false
		err := f.catchUp(ctx, to)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errSink), errors.Is(err, ErrHistoryLost), errors.Is(err, ErrClosed):
			return err
		case err != nil:
			failed = true
			f.log.Warn("cannot follow the chain for now", "err", err)
		}
		if !f.sleep(ctx, failed) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return ErrClosed
		}
	}
}

// keepConnected connects to a peer, and again when the connection has ended, until ctx does. Nobody waits for it: a peer that is away must not hold up what
// others announce.
func (f *Feed) keepConnected(ctx context.Context, p *peer) {
	again := time.NewTicker(f.client.cfg.RetryAfter)
	defer again.Stop()
	for {
		if _, err := f.client.connect(ctx, p); err != nil {
			f.log.Debug("peer not reached", "err", err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// connectAll connects to the peers that are followed, and reports whether one of them could not be reached.
func (f *Feed) connectAll(ctx context.Context) (failed bool) {
	var mu sync.Mutex
	var connecting sync.WaitGroup
	for _, p := range f.peers() {
		connecting.Go(func() {
			if _, err := f.client.connect(ctx, p); err != nil {
				mu.Lock()
				failed = true
				mu.Unlock()
				f.log.Debug("peer not reached", "err", err)
			}
		})
	}
	connecting.Wait()
	return failed
}

// idle is how long the feed waits at most for an announcement before it looks after its connections.
const idle = 2 * time.Second

// sleep waits for an announcement, or less long where something failed, and reports whether the feed goes on.
func (f *Feed) sleep(ctx context.Context, failed bool) bool {
	wait := idle
	if failed {
		wait = min(wait, f.client.cfg.RetryAfter)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-f.client.announced:
	case <-timer.C:
	case <-ctx.Done():
		return false
	case <-f.client.ctx.Done():
		return false
	}
	return true
}

// catchUp delivers all that was announced and not delivered yet. Where something that a peer has announced is not to be had, the rest of it waits, and the
// longer the more often that happens: a peer that invents blocks, or does not answer, or slowly, must not hold up the others.
func (f *Feed) catchUp(ctx context.Context, to submit.ChainSink) error {
	var failed error
	for _, p := range f.peers() {
		final, leaves, known := p.announcedBy()
		doubt := &f.doubts[p.index]
		if !known || time.Now().Before(doubt.until) {
			continue
		}
		if !f.rooted {
			f.fetchAncestors(ctx, p)
		}
		var err error
		begun := time.Now()
		for _, l := range append(leaves, final) {
			if err = f.deliver(ctx, to, p, l, l == final); err != nil {
				break
			}
			if took := time.Since(begun); took > f.client.cfg.RequestTimeout {
				err = fmt.Errorf("jamnps: %s takes %v to show what it has announced", p.Addr, took.Round(time.Millisecond))
				break
			}
		}
		switch {
		case errors.Is(err, errSink), errors.Is(err, ErrHistoryLost), errors.Is(err, ErrClosed):
			return err
		case err != nil:
			doubt.times = min(doubt.times+1, maxDoubt)
			doubt.until = time.Now().Add(f.client.cfg.RetryAfter << doubt.times)
			failed = errors.Join(failed, err)
		default:
			doubt.times = 0
		}
	}
	if err := f.chooseBest(ctx, to); err != nil {
		return err
	}
	if err := f.finalize(ctx, to); err != nil {
		return err
	}
	return failed
}

// doubt is how often in a row a peer announced what was not to be had, and until when it is not listened to.
type doubt struct {
	times int
	until time.Time
}

// maxDoubt bounds the wait: 2^5 times Config.RetryAfter, which is a minute by default.
const maxDoubt = 5

// deliver imports the way to a block that a peer has announced, parents first. Only what makes a longer chain is delivered, or what enough peers hold for
// final: forks cost nothing to who invents them, and a queue has room for so many blocks. What is built on a fork later brings it along.
func (f *Feed) deliver(ctx context.Context, to submit.ChainSink, p *peer, l leaf, final bool) error {
	if f.tree.Get(l.hash) != nil || l.slot <= f.tree.Finalized().Slot {
		return nil
	}
	wanted := func(height uint64) bool { return height > f.tree.Best().Height || final && f.lacksFinal() }
	if height, known := f.short[l.hash]; known && !wanted(height) {
		return nil
	}
	blocks, err := f.fetch(ctx, p, l)
	if errors.Is(err, ErrHistoryLost) && (!final || f.cfg.FinalPeers > 1) { // one peer alone must not be able to end everything
		f.log.Warn("a fork that does not descend from the finalized block is ignored", "head", l.hash)
		p.forget(l)
		return nil
	}
	if err != nil {
		return err
	}
	if height := f.tree.Get(blocks[0].Parent).Height + uint64(len(blocks)); !wanted(height) {
		if len(f.short) >= maxShort {
			clear(f.short)
		}
		f.short[l.hash] = height
		return nil
	}
	for i := range blocks {
		if err := f.importOne(ctx, to, &blocks[i]); err != nil {
			return err
		}
	}
	return nil
}

// maxShort is how many heads of shorter forks are remembered, so as not to be fetched again.
const maxShort = 4096

// lacksFinal reports whether enough peers hold blocks for final that were not delivered.
func (f *Feed) lacksFinal() bool {
	lacking := 0
	for _, p := range f.peers() {
		if final, _, known := p.announcedBy(); known && f.tree.Get(final.hash) == nil {
			lacking++
		}
	}
	return lacking >= f.cfg.FinalPeers
}

const (
	// perRequest is how many blocks are asked for at once.
	perRequest = 64
	// maxAhead is how many slots a block may be ahead of the host's clock. Without a bound a peer could invent a chain of any length, and take any time to hand
	// it over.
	maxAhead = 100
)

// fetch returns the blocks from the first that was not delivered up to an announced one, oldest first, each of them proved by its hash.
func (f *Feed) fetch(ctx context.Context, from *peer, head leaf) ([]jamq.Block, error) {
	var blocks []jamq.Block
	want := head.hash
	for f.tree.Get(want) == nil {
		if n := len(blocks); n >= f.cfg.MaxGap || n > 0 && blocks[n-1].Slot <= f.tree.Oldest().Slot {
			return nil, fmt.Errorf("%w: %s follows no block that was delivered since slot %d", ErrHistoryLost, head.hash, f.tree.Oldest().Slot)
		}
		more, err := anyPeer(f.client, from, func(peer int) ([]jamq.Block, error) { return f.fetchSome(ctx, peer, want, perRequest) })
		if err != nil {
			return nil, err
		}
		for i := range more {
			if f.tree.Get(want) != nil {
				break
			}
			blocks = append(blocks, more[i])
			want = more[i].Parent
		}
	}
	if !f.tree.Get(want).Descends(f.tree.Finalized()) {
		return nil, fmt.Errorf("%w: %s is on a fork that finality has passed by", ErrHistoryLost, head.hash)
	}
	slices.Reverse(blocks)
	return blocks, nil
}

// fetchSome asks a peer for a block and some before it, and takes none that is not what it was asked for.
func (f *Feed) fetchSome(ctx context.Context, peer int, want jamq.HeaderHash, most uint32) ([]jamq.Block, error) {
	answer, err := f.client.Blocks(ctx, peer, want, Descending, most)
	if err != nil {
		return nil, err
	}
	if len(answer) == 0 {
		return nil, fmt.Errorf("%w: no block for %s", ErrMalformed, want)
	}
	var blocks []jamq.Block
	spec := f.client.cfg.Codec.Spec()
	for i := range answer {
		b, err := f.client.cfg.Codec.Imported(&answer[i])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if now := f.clock.SlotAt(time.Now()); b.Slot > now.Add(maxAhead) {
			return nil, fmt.Errorf("%w: block %s of slot %d, and now it is slot %d", ErrMalformed, b.Hash, b.Slot, now)
		}
		if err := b.Validate(&spec); err != nil { // the sink would refuse it, and end everything
			return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if b.Hash != want {
			return nil, fmt.Errorf("%w: block %s for %s", ErrMalformed, b.Hash, want)
		}
		if n := len(blocks); n > 0 && b.Slot >= blocks[n-1].Slot {
			return nil, fmt.Errorf("%w: block %s of slot %d has a child of slot %d", ErrMalformed, b.Hash, b.Slot, blocks[n-1].Slot)
		}
		blocks = append(blocks, b)
		want = b.Parent
	}
	return blocks, nil
}

// fetchAncestors fetches the blocks before the root that can still be anchors: a queue that has restarted knows them, and may choose one. Peers that do not
// have them any more, or a chain that begins here, are no error; where nobody answers it is tried again.
func (f *Feed) fetchAncestors(ctx context.Context, from *peer) {
	root := f.tree.Oldest().Hash
	blocks, err := anyPeer(f.client, from, func(peer int) ([]jamq.Block, error) {
		return f.fetchSome(ctx, peer, root, uint32(f.cfg.RecentHistory)+2)
	})
	f.rooted = err == nil || errors.Is(err, ErrRefused)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range blocks { // from the root down
		if i > 0 && !f.tree.Precede(blocks[i].Hash, blocks[i].Slot, common.Hash{}) {
			return
		}
		f.tree.Oldest().Note = blocks[i].ParentStateRoot
	}
}

// importOne delivers a block without calling it the best.
func (f *Feed) importOne(ctx context.Context, to submit.ChainSink, b *jamq.Block) error {
	parent := f.tree.Get(b.Parent)
	if b.Slot <= parent.Slot {
		return fmt.Errorf("%w: block %s of slot %d on one of slot %d", ErrMalformed, b.Hash, b.Slot, parent.Slot)
	}
	if err := to.Import(ctx, *b, f.tree.BestHash()); err != nil {
		return fmt.Errorf("%w: block %s: %w", errSink, b.Hash, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tree.Add(parent.Child(b.Hash, b.Slot, b.ParentStateRoot))
	return nil
}

// chooseBest makes the head of the longest chain on the finalized block the best one; of several as long, the one that is it already, or else the one of
// the least hash.
func (f *Feed) chooseBest(ctx context.Context, to submit.ChainSink) error {
	best := f.tree.Best()
	for n := range f.tree.All() {
		switch {
		case n.Height < best.Height, !n.Descends(f.tree.Finalized()):
		case n.Height > best.Height, best != f.tree.Best() && slices.Compare(n.Hash[:], best.Hash[:]) < 0:
			best = n
		}
	}
	return f.makeBest(ctx, to, best)
}

func (f *Feed) makeBest(ctx context.Context, to submit.ChainSink, n *node) error {
	if n == f.tree.Best() {
		return nil
	}
	block := jamq.Block{Hash: n.Hash, Slot: n.Slot}
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

// finalize passes on the highest block that enough peers hold for final.
func (f *Feed) finalize(ctx context.Context, to submit.ChainSink) error {
	var finals []*node
	for _, p := range f.peers() {
		if final, _, known := p.announcedBy(); known && f.tree.Get(final.hash) != nil {
			finals = append(finals, f.tree.Get(final.hash))
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
	if highest == nil || highest.Height <= f.tree.Finalized().Height {
		return nil
	}
	if !highest.Descends(f.tree.Finalized()) {
		return fmt.Errorf("%w: peers finalized %s, which does not descend from the finalized %s", ErrHistoryLost, highest.Hash, f.tree.Finalized().Hash)
	}
	if err := to.Finalize(ctx, highest.Hash); err != nil {
		return fmt.Errorf("%w: finalized block %s: %w", errSink, highest.Hash, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tree.Finalize(highest)
	return nil
}
