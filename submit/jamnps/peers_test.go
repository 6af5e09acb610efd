package jamnps

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/submit/codec"
)

// A peer that lies about blocks is not believed; another one is asked.
func TestFeedTakesOnlyProvedBlocks(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		liar, honest := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
		c := openClient(t, w, nil, liar, honest)
		f, sink := openFeed(t, c, FeedConfig{})
		bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the liar is asked first")
		b := w.grow(w.grow(w.best, 1), 1)
		other := newWorld(t)
		forged := other.grow(other.genesis, 5)
		liar.set(func() { liar.garbage[128] = framed(forged.raw) })
		until(t, f, sink, b, w.genesis)
		require.Positive(t, liar.count(128))
		tampered := append([]byte{}, b.raw...)
		tampered[len(tampered)-70] ^= 1 // in the extrinsic
		liar.set(func() { liar.garbage[128] = framed(tampered) })
		_, err := f.fetchSome(t.Context(), 0, b.hash, 1)
		require.ErrorIs(t, err, ErrMalformed)
		liar.set(func() { liar.garbage[128] = framed(nil) })
		_, err = f.fetchSome(t.Context(), 0, b.hash, 1)
		require.ErrorIs(t, err, ErrMalformed, "no block at all")
	})
}

// A peer that does not answer in time delays no request: another peer serves
// it.
func TestSlowPeer(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		slow, quick := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
		c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout = 50 * time.Millisecond }, slow, quick)
		f, sink := openFeed(t, c, FeedConfig{})
		hold := make(chan struct{})
		slow.set(func() { slow.hold[128], slow.hold[129] = hold, hold })
		defer close(hold)
		bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the peer has announced its heads")
		var head *worldBlock
		for range 5 {
			head = w.grow(w.best, 1)
		}
		until(t, f, sink, head, w.genesis)
		require.Positive(t, slow.count(128))
		refine, err := f.Context(t.Context(), head.parent.hash, nil)
		require.NoError(t, err)
		require.EqualValues(t, beefyRootOf(head.parent.hash), refine.BeefyRoot)
	})
}

// A peer that announces invented blocks and answers no requests delays its own
// announcements only.
func TestInventedAnnouncements(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const timeout = 100 * time.Millisecond
		w := newWorld(t)
		liar, honest := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
		c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout, cfg.RetryAfter = timeout, timeout }, liar, honest)
		f, sink := openFeed(t, c, FeedConfig{})
		hold := make(chan struct{})
		defer close(hold)
		liar.set(func() { liar.hold[128] = hold })
		bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the peer has announced its heads")
		p := c.peers[0]
		p.mu.Lock()
		for i := range byte(200) {
			p.heads.leaves[jamq.HeaderHash{1, i}] = 1000
		}
		p.mu.Unlock()
		begun := time.Now()
		head := w.genesis
		for range 5 {
			head = w.grow(head, 1)
			until(t, f, sink, head, w.genesis)
		}
		require.Less(t, time.Since(begun), 20*timeout, "200 time-outs are not waited for")
		require.Positive(t, liar.count(128))
	})
}

// Nor does one that takes its time for each of many forks, and always answers.
func TestSlowlyServedForks(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const timeout = 200 * time.Millisecond
		w, invented := twoWorlds(t)
		liar := startGuarantor(t, invented, 1)
		c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout = timeout }, liar, startGuarantor(t, w, 2))
		f, sink := openFeed(t, c, FeedConfig{})
		head := w.grow(w.grow(w.best, 1), 1)
		until(t, f, sink, head, w.genesis)
		bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the peer has announced its heads")
		for i := range jamq.Slot(200) {
			invented.invent(invented.genesis, 1+i, codec.Extrinsics{})
		}
		bubble.Await(t, time.Millisecond, func() bool { _, leaves, _ := c.peers[0].announced(); return len(leaves) >= 200 }, "the peer has announced all forks")
		defer liar.pace(128, timeout/4)()
		head = w.grow(head, 1)
		begun := time.Now()
		until(t, f, sink, head, w.genesis)
		require.Less(t, time.Since(begun), 10*timeout, "200 answers take 50 time-outs")
	})
}

// pace lets the guarantor answer one request of a kind in each interval, until
// the returned function is called.
func (g *guarantor) pace(kind byte, interval time.Duration) (stop func()) {
	one, end := make(chan struct{}), make(chan struct{})
	g.set(func() { g.hold[kind] = one })
	var pacing sync.WaitGroup
	pacing.Go(func() {
		defer close(one)
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		for {
			select {
			case <-end:
				return
			case <-ticks.C:
			}
			select {
			case one <- struct{}{}:
			case <-end:
				return
			}
		}
	})
	return func() { close(end); pacing.Wait() }
}

// Nor does one that serves a long fork slowly, one block in each answer. The fork is
// invalid at its beginning, which the feed would learn last.
func TestSlowlyServedFork(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const timeout = 200 * time.Millisecond
		w, invented := twoWorlds(t)
		liar := startPeer(t, invented, 1, manners{single: true})
		c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout = timeout }, liar, startGuarantor(t, w, 2))
		f, sink := openFeed(t, c, FeedConfig{})
		head := w.grow(w.grow(w.best, 1), 1)
		until(t, f, sink, head, w.genesis)
		bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the peer has announced its heads")
		unknownCore := codec.Guarantee{Report: codec.WorkReport{Core: 99, Package: codec.PackageSpec{Hash: jamq.PackageHash{1}}}}
		fork := invented.invent(invented.genesis, 1, codec.Extrinsics{Guarantees: []codec.Guarantee{unknownCore}})
		for i := range jamq.Slot(200) {
			fork = invented.invent(fork, 2+i, codec.Extrinsics{})
		}
		bubble.Await(t, time.Millisecond, func() bool {
			_, leaves, _ := c.peers[0].announced()
			return slices.ContainsFunc(leaves, func(l leaf) bool { return l.hash == fork.hash })
		}, "the peer has announced the fork")
		defer liar.pace(128, timeout/4)()
		head = w.grow(head, 1)
		begun := time.Now()
		until(t, f, sink, head, w.genesis)
		require.Less(t, time.Since(begun), 10*timeout, "201 answers take 50 time-outs")
		require.Positive(t, liar.count(128))
	})
}

// A peer that is slow and alone gets a long gap closed in several turns.
func TestSlowPeerClosesAGap(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const timeout = 200 * time.Millisecond
		w := newWorld(t)
		slow := startPeer(t, w, 1, manners{single: true})
		c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout = timeout }, slow)
		f, sink := openFeed(t, c, FeedConfig{})
		head := w.genesis
		for range 50 {
			head = w.grow(head, 1)
		}
		defer slow.pace(128, timeout/4)()
		until(t, f, sink, head, w.genesis)
		require.Less(t, slow.count(128), 70, "no block is requested in each turn")
		require.Zero(t, f.walked(0))
	})
}

// bests receives each best block.
type bests chan jamq.HeaderHash

func (b bests) Import(_ context.Context, _ jamq.Block, best jamq.HeaderHash) error {
	b <- best
	return nil
}

func (bests) Finalize(context.Context, jamq.HeaderHash) error { return nil }

// A peer that is away does not hold up what the others announce, however long it takes to find out.
func TestPeerIsAway(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		away, honest := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
		away.down()
		socket, err := w.listen(away.addr) // never answers
		require.NoError(t, err)
		defer func() { require.NoError(t, socket.Close()) }()
		c := openClient(t, w, func(cfg *Config) { cfg.DialTimeout = time.Minute }, away, honest)
		f, err := OpenFeed(t.Context(), c, FeedConfig{Root: jamq.Block{Hash: w.genesis.hash}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		told, ended := make(bests, 100), make(chan error)
		go func() { ended <- f.Follow(ctx, told) }()
		deadline := time.After(24 * time.Hour)
		for range 3 {
			head := w.grow(w.best, 1).hash
			for best := (jamq.HeaderHash{}); best != head; {
				select {
				case best = <-told:
				case <-deadline:
					t.Fatal("the other peer's blocks do not come")
				}
			}
		}
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// A fork that finality has passed by is fetched once, and not again and again.
func TestLostForkIsForgotten(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, nil, g)
		f, sink := openFeed(t, c, FeedConfig{})
		a := w.grow(w.genesis, 1)
		b := w.grow(a, 1)
		head := w.grow(w.grow(b, 1), 1)
		w.finalize(2)
		g.cut() // the next handshake has finality
		until(t, f, sink, head, b)
		lost := w.grow(a, 50)
		announced := func() bool {
			_, leaves, _ := c.peers[0].announced()
			return slices.ContainsFunc(leaves, func(l leaf) bool { return l.hash == lost.hash })
		}
		bubble.Await(t, time.Millisecond, announced, "the peer has announced the fork")
		before := g.count(128)
		for range 5 {
			require.NoError(t, f.catchUp(t.Context(), sink))
		}
		require.Equal(t, before+1, g.count(128))
		require.False(t, announced())
	})
}

// A block from the future is not taken, nor what is built on it.
func TestBlocksFromTheFuture(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		f, sink := openFeed(t, openClient(t, w, nil, g), FeedConfig{})
		a := w.grow(w.genesis, 1)
		until(t, f, sink, a, w.genesis)
		future := w.grow(a, f.clock.SlotAt(time.Now())+1100)
		_, err := f.fetchSome(t.Context(), 0, w.grow(future, 1).hash, 10)
		require.ErrorIs(t, err, ErrMalformed)
		b := w.grow(w.grow(w.grow(a, 1), 1), 1)
		until(t, f, sink, b, w.genesis)
		require.Nil(t, f.tree.Get(future.hash))
	})
}

// Two of three must agree on finality.
func TestFinalPeers(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		all := []*guarantor{startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)}
		c := openClient(t, w, nil, all...)
		f, sink := openFeed(t, c, FeedConfig{FinalPeers: 2})
		a := w.grow(w.best, 1)
		b := w.grow(a, 1)
		head := w.grow(b, 1)
		until(t, f, sink, head, w.genesis)
		bubble.Await(t, time.Millisecond, func() bool {
			for _, p := range c.peers {
				if _, leaves, up := p.announced(); !up || len(leaves) == 0 || leaves[len(leaves)-1].hash != head.hash {
					return false
				}
			}
			return true
		}, "all have said what they have")
		say := func(peer int, final *worldBlock) {
			p := c.peers[peer]
			p.mu.Lock()
			p.heads.final = leaf{final.hash, final.header.Slot}
			p.mu.Unlock()
		}
		say(0, b)
		require.NoError(t, f.finalize(t.Context(), sink))
		require.Equal(t, w.genesis.hash, sink.view.Finalized().Hash, "one is not enough")
		say(1, a)
		require.NoError(t, f.finalize(t.Context(), sink))
		require.Equal(t, a.hash, sink.view.Finalized().Hash, "both hold this one for final")
		say(2, head)
		require.NoError(t, f.finalize(t.Context(), sink))
		require.Equal(t, b.hash, sink.view.Finalized().Hash)
	})
}

// invent adds a block with the given contents to a parent. Its hash and its
// extrinsic hash are correct; only the seal is missing.
func (w *world) invent(parent *worldBlock, slot jamq.Slot, contents codec.Extrinsics) *worldBlock {
	w.mu.Lock()
	defer w.mu.Unlock()
	header := codec.Header{Parent: parent.hash, ParentStateRoot: parent.root(), Slot: slot}
	return w.seal(codec.Block{Header: header, Extrinsic: contents}, &worldBlock{parent: parent, height: parent.height + 1})
}

// A block that no chain can have, of one peer, is that peer's affair: it does not get to the queue,
// which would refuse it, and end everything.
func TestInvalidBlock(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w, invented := twoWorlds(t)
		liar, honest := startGuarantor(t, invented, 1), startGuarantor(t, w, 2)
		c := openClient(t, w, nil, liar, honest)
		f, sink := openFeed(t, c, FeedConfig{})
		bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the peer has announced its heads")
		report := func(core jamq.CoreIndex) codec.Guarantee {
			return codec.Guarantee{Report: codec.WorkReport{Core: core, Package: codec.PackageSpec{Hash: jamq.PackageHash{1, byte(core)}}}}
		}
		bad := invented.invent(invented.genesis, 3, codec.Extrinsics{Guarantees: []codec.Guarantee{report(99)}})
		bubble.Await(t, time.Millisecond, func() bool {
			_, leaves, _ := c.peers[0].announced()
			return slices.ContainsFunc(leaves, func(l leaf) bool { return l.hash == bad.hash })
		}, "the peer has announced the invalid block")
		until(t, f, sink, w.grow(w.grow(w.best, 1), 1), w.genesis)
		_, err := f.fetchSome(t.Context(), 0, bad.hash, 1)
		require.ErrorIs(t, err, ErrMalformed)
		bad = invented.invent(invented.genesis, 4, codec.Extrinsics{Guarantees: []codec.Guarantee{report(1), report(1)}})
		_, err = f.fetchSome(t.Context(), 0, bad.hash, 1)
		require.ErrorIs(t, err, ErrMalformed)
	})
}

// Any number of forks of one peer cannot fill the queue: a fork that is not
// longer than the best chain is not delivered, whether or not the peer reports
// it as final.
func TestInventedForks(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w, invented := twoWorlds(t)
		liar := startGuarantor(t, invented, 1)
		c := openClient(t, w, nil, liar, startGuarantor(t, w, 2), startGuarantor(t, w, 3))
		f, sink := openFeed(t, c, FeedConfig{})
		require.Equal(t, 2, f.cfg.FinalPeers, "by default most of those that are followed")
		head := w.grow(w.grow(w.best, 1), 1)
		until(t, f, sink, head, w.genesis)
		bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the peer has announced its heads")
		for i := range jamq.Slot(100) {
			fork := invented.invent(invented.genesis, 1+i, codec.Extrinsics{})
			if i%10 == 0 {
				invented.mu.Lock()
				invented.finalized = fork
				invented.mu.Unlock()
			}
		}
		bubble.Await(t, time.Millisecond, func() bool { _, leaves, _ := c.peers[0].announced(); return len(leaves) > 5 }, "the peer has announced forks")
		for range 20 {
			head = w.grow(head, 1)
			until(t, f, sink, head, w.genesis)
		}
		require.Less(t, f.tree.Len(), 40)
		require.Positive(t, liar.count(128), "its forks were looked at")
		final := w.finalize(3)
		head = w.grow(head, 1) // announces finality
		until(t, f, sink, head, final)
	})
}

// A shorter fork is delivered once enough peers hold it for final.
func TestShorterForkIsFinal(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		c := openClient(t, w, nil, startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3))
		f, sink := openFeed(t, c, FeedConfig{})
		head := w.grow(w.grow(w.grow(w.genesis, 1), 1), 1)
		until(t, f, sink, head, w.genesis)
		short := w.grow(w.grow(w.genesis, 2), 2)
		w.mu.Lock()
		w.finalized, w.best = short, short
		w.mu.Unlock()
		until(t, f, sink, w.grow(short, 1), short)
	})
}
