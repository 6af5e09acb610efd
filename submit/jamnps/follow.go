package jamnps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/internal/feed"
	"github.com/jamq/jamq/internal/headers"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
)

// Follow implements submit.ChainFeed. It runs until ctx ends, and then returns ctx's
// error. It returns earlier only with an error that wraps ErrHistoryLost, ErrClosed or
// the sink's error. After any other failure of peers or connections, Follow tries
// again. If Follow is already running, a second call returns ErrInvalidConfig.
func (f *Feed) Follow(ctx context.Context, to submit.ChainSink) error {
	if !f.loop.Begin() {
		return fmt.Errorf("%w: Follow is running", ErrInvalidConfig)
	}
	defer f.loop.End()
	following, cancel := context.WithCancel(ctx)
	var connecting sync.WaitGroup
	defer connecting.Wait()
	defer cancel()
	for _, p := range f.peers() {
		connecting.Go(func() { f.keepConnected(following, p) })
	}
	if f.client.cfg.Guarantors == nil {
		connecting.Go(func() { f.keepAssignment(following) })
	}
	wait := func(failed bool) bool { return f.sleep(ctx, failed) }
	return f.loop.Run(ctx, f.log, f.client.cfg.Codec.Spec().SlotDuration, func() error { return f.catchUp(ctx, to) }, wait, ErrClosed, feed.ErrSink, ErrHistoryLost, ErrClosed)
}

// Health returns the condition of the feed for monitoring, for example its heads, the
// number of connected peers, and how far the feed is behind.
func (f *Feed) Health() submit.FeedHealth {
	h := f.loop.Health()
	best, final := f.heads()
	h.Best, h.Finalized = best.Slot, final.Slot
	for _, p := range f.peers() {
		h.Wanted++
		_, leaves, known := p.announced()
		if !known {
			continue
		}
		h.Nodes++
		for _, l := range leaves {
			if l.slot > h.Best.Add(h.Behind) && headers.CheckAhead(f.clock, time.Now(), l.slot) == nil {
				h.Behind = l.slot - h.Best
			}
		}
	}
	return h
}

// chain gives package internal/feed, which contains the code that all feeds share,
// access to the tree of delivered blocks.
func (f *Feed) chain() feed.Chain[note] {
	return feed.Chain[note]{Mu: &f.mu, Tree: f.tree, Loop: &f.loop}
}

// keepConnected keeps a peer connected until ctx ends.
func (f *Feed) keepConnected(ctx context.Context, p *peer) {
	again := time.NewTicker(f.client.cfg.RetryAfter)
	defer again.Stop()
	for {
		// Each peer is connected on a separate goroutine, so that a peer that cannot be reached
		// delays no other.
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

// connectAll connects to all followed peers at the same time. It returns true if it
// could not reach all of them.
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

// idle is how long the feed waits for an announcement before it checks its peers
// anyway.
const idle = 2 * time.Second

// sleep waits until a peer announces something, or until the next attempt is due. It
// returns false if the feed must end.
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

// catchUp delivers all announced blocks that were not delivered yet.
func (f *Feed) catchUp(ctx context.Context, to submit.ChainSink) error {
	var failed error
	f.highest = f.tree.Best().Height
	for _, p := range f.peers() {
		final, leaves, known := p.announced()
		skipped := &f.backoffs[p.index]
		if !known {
			f.findFinal(p)
			continue
		}
		if time.Now().Before(skipped.until) {
			failed = errors.Join(failed, skipped.err)
			continue
		}
		if !f.rooted {
			f.fetchAncestors(ctx, p)
		}
		var err error
		now := &turn{timeout: f.client.cfg.RequestTimeout, peer: p}
		for _, l := range append(leaves, final) {
			if err = f.deliver(ctx, to, now, l, l == final); err != nil {
				break
			}
			if err = now.checkPace(); err != nil {
				break
			}
		}
		if errors.Is(err, chainview.ErrFull) || errors.Is(err, errUnbacked) { // finality makes room
			err = errors.Join(err, f.deliver(ctx, to, now, final, true))
		}
		switch {
		case errors.Is(err, feed.ErrSink), errors.Is(err, ErrHistoryLost), errors.Is(err, ErrClosed):
			return err
		case err != nil:
			// The peer may have invented its blocks, or is slow. It must not delay the
			// others, so its announcements are ignored for a time that doubles with
			// each failure.
			skipped.times++
			first := 2 * f.client.cfg.RetryAfter
			skipped.until = time.Now().Add(backoff.Wait(first, mostSkipped*f.client.cfg.RetryAfter, skipped.times))
			skipped.err = err
			failed = errors.Join(failed, err)
		default:
			*skipped = peerBackoff{}
		}
	}
	if err := f.checkFinality(); err != nil {
		return errors.Join(err, failed)
	}
	if err := f.chooseBest(ctx, to); err != nil {
		return err
	}
	if err := f.finalize(ctx, to); err != nil {
		return err
	}
	return failed
}

// peerBackoff records why and for how long the feed ignores a peer's announcements,
// because it could not deliver the peer's blocks. times is the number of failures in a
// row.
type peerBackoff struct {
	times int
	err   error
	until time.Time
}

// mostSkipped is the longest time for which the feed ignores a peer's announcements, in
// units of Config.RetryAfter. By default it is about a minute.
const mostSkipped = 32

// deliver imports the blocks up to an announced block into the sink, parents first.
func (f *Feed) deliver(ctx context.Context, to submit.ChainSink, now *turn, l leaf, final bool) error {
	p := now.peer
	back := final && f.goesBack(p, l)
	if n := f.tree.Get(l.hash); n != nil {
		if final {
			f.findFinal(p)
		}
		f.backed(n, p)
		return nil
	}
	if final && f.tree.Excludes(l.hash, l.slot) {
		return f.loseFinal(p, f.chain().Exclude(l.hash, l.slot))
	}
	if l.slot <= f.tree.Finalized().Slot {
		if final && l.slot > 0 && !back { // older than all blocks of the tree
			f.loop.NoteContradiction(fmt.Errorf("%w: peer %s: its final block %s of slot %d is older than those that were final before", submit.ErrContradiction, p.Addr, l.hash, l.slot))
		}
		return nil
	}
	// Anyone can forge a short fork, and the queue has limited room. A fork is
	// therefore delivered only if it is longer than every delivered chain, or if enough
	// peers call blocks final that were not delivered.
	wanted := func(height uint64) bool { return height > f.highest || final && f.lacksFinal() }
	if height, known := f.short[l.hash]; known && !wanted(height) {
		return nil
	}
	now.walked = 0
	br, err := f.fetchBranch(ctx, now, l)
	switch {
	case errors.Is(err, feed.ErrApart):
		p.forks.Do(func() {
			f.log.Warn("a fork that does not descend from the finalized block is ignored", "peer", p.Addr, "head", l.hash, "err", err)
		})
		p.forget(l)
		if !final {
			f.loop.NoteContradiction(fmt.Errorf("peer %s: %w", p.Addr, err))
			return nil
		}
		return f.loseFinal(p, err)
	case err != nil:
		return err
	case final:
		f.findFinal(p)
	}
	f.backed(f.tree.Get(br.next), p)
	if height := f.tree.Get(br.next).Height + uint64(len(br.path)); !wanted(height) {
		if len(f.short) >= maxShort {
			clear(f.short)
		}
		f.short[l.hash] = height
		f.unfinished[p.index].forget(br)
		return nil
	}
	if err := f.room(br.path, p); err != nil && !(final && f.isProved(ctx, l.hash)) {
		return err
	}
	return f.importBranch(ctx, to, now, br, final)
}

// importBranch imports the blocks from the first delivered block to an announced head into
// the sink, parents first.
func (f *Feed) importBranch(ctx context.Context, to submit.ChainSink, now *turn, br *branch, final bool) error {
	for len(br.path) > 0 {
		if err := f.refill(ctx, now, br); err != nil {
			return err
		}
		e := br.oldest()
		b := &e.Block
		err := f.importOne(ctx, to, e)
		if errors.Is(err, chainview.ErrFull) && final {
			f.beneath[now.peer.index] = f.tree.Get(b.Parent)
		}
		if err != nil {
			return err
		}
		f.backing.deliver(b.Hash, now.peer.index, f.enoughPeers())
		now.delivered++
		br.pop()
	}
	f.unfinished[now.peer.index].forget(br)
	return nil
}

// maxShort is the maximum number of heads of shorter forks that the feed remembers, so
// that it does not fetch these forks again.
const maxShort = 4096

// fetchSome requests a block and some of its ancestors from a peer, and verifies them.
func (f *Feed) fetchSome(ctx context.Context, peer int, want jamq.HeaderHash, most int) ([]codec.Effect, error) {
	answer, err := f.client.fetchBlocks(ctx, peer, want, descending, uint32(most))
	if err != nil {
		return nil, err
	}
	if len(answer) == 0 {
		return nil, fmt.Errorf("%w: no block for %s", ErrMalformed, want)
	}
	var blocks []codec.Effect
	for i := range answer {
		e, err := f.verify(&answer[i], want)
		b := &e.Block
		if n := len(blocks); err == nil && n > 0 && b.Slot >= blocks[n-1].Block.Slot {
			err = fmt.Errorf("%w: block %s of slot %d has a child of slot %d", ErrMalformed, b.Hash, b.Slot, blocks[n-1].Block.Slot)
		}
		switch {
		// The blocks before the first invalid one are of use.
		case err != nil && i == 0:
			return nil, err
		case err != nil:
			return blocks, nil
		}
		blocks = append(blocks, e)
		want = b.Parent
	}
	return blocks, nil
}

// verify checks a block against the wanted hash, and returns its effect on packages.
func (f *Feed) verify(b *codec.Block, want jamq.HeaderHash) (codec.Effect, error) {
	c := f.client.cfg.Codec
	switch hash, err := c.HeaderHash(&b.Header); {
	case err != nil:
		return codec.Effect{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	case hash != want:
		return codec.Effect{}, fmt.Errorf("%w: got block %s, want %s", ErrMalformed, hash, want)
	// The genesis block is only a header. Its extrinsic hash is zero, to which no
	// extrinsic commits.
	case hash == f.client.cfg.Genesis:
		genesis := codec.Effect{Block: jamq.Block{Hash: hash, Slot: b.Header.Slot, Parent: b.Header.Parent, ParentStateRoot: b.Header.ParentStateRoot}, Next: -1}
		if b.Header.Epoch != nil {
			genesis.Next = len(b.Header.Epoch.Validators)
		}
		return genesis, nil
	}
	out, err := c.EffectOf(b)
	if err != nil {
		return codec.Effect{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := headers.CheckAhead(f.clock, time.Now(), out.Block.Slot); err != nil {
		return codec.Effect{}, fmt.Errorf("%w: block %s: %w", ErrMalformed, want, err)
	}
	// The sink would refuse an invalid block, and Follow would end. So an invalid block is
	// refused here, as a fault of the peer.
	spec := c.Spec()
	if err := out.Block.Validate(&spec); err != nil {
		return codec.Effect{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return out, nil
}

// fetchAncestors fetches the blocks before the root that can still be anchors.
func (f *Feed) fetchAncestors(ctx context.Context, from *peer) {
	root := f.tree.Oldest().Hash
	blocks, err := anyPeer(f.client, from, func(peer int) ([]codec.Effect, error) {
		return f.fetchSome(ctx, peer, root, f.cfg.RecentHistory+2)
	})
	// No peer needs to have these blocks: they may be too old, or the chain may begin at the
	// root. Only if no peer has answered, the next call asks again.
	f.rooted = err == nil || errors.Is(err, ErrRefused)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range blocks { // from the root down
		b := &blocks[i].Block
		if i > 0 && !f.tree.Precede(b.Hash, b.Slot, note{}) {
			return
		}
		f.tree.Oldest().Note.root = b.ParentStateRoot
	}
}

// importOne delivers one block to the sink, but leaves the best block to chooseBest.
func (f *Feed) importOne(ctx context.Context, to submit.ChainSink, e *codec.Effect) error {
	parent := f.tree.Get(e.Block.Parent)
	if e.Block.Slot <= parent.Slot {
		return fmt.Errorf("%w: block %s of slot %d has a parent of slot %d", ErrMalformed, e.Block.Hash, e.Block.Slot, parent.Slot)
	}
	before, err := f.sizesAfter(ctx, parent, e.Block.ParentStateRoot)
	if err != nil {
		return err
	}
	b, sizes, err := e.Imported(before)
	if err != nil {
		return fmt.Errorf("%w: block %s: %w", ErrMalformed, e.Block.Hash, err)
	}
	switch err := to.Import(ctx, b, f.tree.BestHash()); {
	case errors.Is(err, chainview.ErrFull):
		return fmt.Errorf("jamnps: block %s: %w", b.Hash, err)
	case err != nil:
		return fmt.Errorf("%w: block %s: %w", feed.ErrSink, b.Hash, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tree.Add(parent.Child(b.Hash, b.Slot, note{b.ParentStateRoot, sizes}))
	f.highest = max(f.highest, parent.Height+1)
	return nil
}

// chooseBest chooses the best block and reports it to the sink: the head of the longest
// chain that contains the finalized block.
func (f *Feed) chooseBest(ctx context.Context, to submit.ChainSink) error {
	best := f.tree.Best()
	for n := range f.tree.All() {
		switch {
		case n.Height < best.Height, !n.Descends(f.tree.Finalized()):
		// Among chains of the same length the current best block stays. If it is on
		// none of them, the lowest hash wins.
		case n.Height > best.Height, best != f.tree.Best() && slices.Compare(n.Hash[:], best.Hash[:]) < 0:
			best = n
		}
	}
	if best == f.tree.Best() {
		return nil
	}
	return f.chain().MakeBest(ctx, to, best, false)
}
