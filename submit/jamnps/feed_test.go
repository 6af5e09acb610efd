package jamnps

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
)

// viewSink takes blocks as a queue does.
type viewSink struct {
	view   *chainview.View
	refuse error
}

func (s *viewSink) Import(_ context.Context, b jamq.Block, best jamq.HeaderHash) error {
	if s.refuse != nil {
		return s.refuse
	}
	return s.view.ImportBest(&b, best)
}

func (s *viewSink) Finalize(_ context.Context, hash jamq.HeaderHash) error {
	return s.view.Finalize(hash)
}

func openFeed(t *testing.T, c *Client, cfg FeedConfig) (*Feed, *viewSink) {
	t.Helper()
	f, err := OpenFeed(t.Context(), c, cfg)
	require.NoError(t, err)
	spec := jamq.Tiny()
	view, err := chainview.New(&spec, f.Root())
	require.NoError(t, err)
	return f, &viewSink{view: view}
}

// until lets the feed work until the sink is where it should be.
func until(t *testing.T, f *Feed, s *viewSink, best, final *worldBlock) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for s.view.Best().Hash != best.hash || s.view.Finalized().Hash != final.hash {
		require.True(t, time.Now().Before(deadline), "best %v, want %s; final %v, want %s", s.view.Best(), best.hash, s.view.Finalized(), final.hash)
		f.connectAll(t.Context())
		if err := f.catchUp(t.Context(), s); err != nil {
			require.False(t, errors.Is(err, errSink) || errors.Is(err, ErrHistoryLost), "%v", err)
		}
		if s.view.Best().Hash != best.hash || s.view.Finalized().Hash != final.hash {
			select {
			case <-f.client.announced:
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// A chain with forks and gaps over a connection that is cut and a node that goes away: the view comes to the same chain.
func TestFeedFollowsForks(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	w := newWorld(t)
	g := startGuarantor(t, w, 1)
	g.set(func() { g.opensUp = true }) // both sides open an UP stream: the greater id counts
	c := openClient(t, w, nil, g)
	f, sink := openFeed(t, c, FeedConfig{})
	require.Equal(t, w.genesis.hash, f.Root().Hash)
	head := w.genesis
	for i := range 120 {
		for range 1 + random.IntN(3)*random.IntN(3) {
			from := head
			if random.IntN(5) == 0 { // a fork
				for depth := random.IntN(3); depth > 0 && from.parent != nil && from != w.finalized; depth-- {
					from = from.parent
				}
			}
			head = w.grow(from, 1+jamq.Slot(random.IntN(2)))
		}
		for head.height <= w.best.height && head != w.best { // the longest chain is unique when we look
			head = w.grow(head, 1)
		}
		final := w.finalize(2 + random.IntN(3))
		head = w.grow(head, 1)
		switch i % 10 {
		case 3:
			g.cut()
		case 7:
			g.down()
			head = w.grow(head, 1)
			g.up()
		}
		until(t, f, sink, head, final)
	}
	require.Equal(t, uint64(w.best.height), sink.view.Best().Height, "no block is missing")
	require.LessOrEqual(t, f.tree.Len(), 40, "old blocks are forgotten")
	best, finalized := f.Heads()
	require.Equal(t, w.best.hash, best.Hash)
	require.Equal(t, w.finalized.hash, finalized.Hash)
	require.Equal(t, w.finalized.root(), finalized.StateRoot)
}

// Contexts carry the anchor's roots, of which the peak is read from the state.
func TestFeedContext(t *testing.T) {
	w := newWorld(t)
	g := startGuarantor(t, w, 1)
	c := openClient(t, w, nil, g)
	f, sink := openFeed(t, c, FeedConfig{})
	var chain []*worldBlock
	for range 12 {
		chain = append(chain, w.grow(w.best, 1))
	}
	final := w.finalize(4)
	chain = append(chain, w.grow(w.best, 1))
	until(t, f, sink, chain[12], final)
	refine, err := f.Context(t.Context(), chain[9].hash, []jamq.PackageHash{{2}, {1}, {2}})
	require.NoError(t, err)
	require.Equal(t, jamq.RefineContext{
		Anchor: chain[9].hash, AnchorSlot: chain[9].header.Slot, StateRoot: chain[9].root(), BeefyRoot: beefyRootOf(chain[9].hash),
		LookupAnchor: final.hash, LookupAnchorSlot: final.header.Slot, LookupStateRoot: final.root(), Prerequisites: []jamq.PackageHash{{1}, {2}},
	}, refine)
	_, err = f.Context(t.Context(), chain[12].hash, nil)
	require.ErrorIs(t, err, ErrNoState, "the newest has no root yet")
	_, err = f.Context(t.Context(), chain[3].hash, nil)
	require.ErrorIs(t, err, ErrNoState, "out of recent history")
	_, err = f.Context(t.Context(), jamq.HeaderHash{1}, nil)
	require.ErrorIs(t, err, ErrHistoryLost)
	g.set(func() { g.refuse[129] = true })
	_, err = f.Context(t.Context(), chain[9].hash, nil)
	require.ErrorIs(t, err, ErrRefused)
	for name, garbage := range map[string][]byte{
		"nothing": {}, "half": framed(make([]byte, 128)), "boundary": append(framed(make([]byte, 63)), framed(nil)...), "huge": {0, 0, 0, 0xff},
		"short key": append(framed(nil), framed(make([]byte, 30))...), "other key": append(framed(nil), framed(make([]byte, 32))...),
	} {
		g.set(func() { g.refuse[129], g.garbage[129] = false, garbage })
		_, err = f.Context(t.Context(), chain[9].hash, nil)
		require.True(t, errors.Is(err, ErrMalformed) || errors.Is(err, ErrTooLarge), "%s: %v", name, err)
	}
}

// What a child on a fork says of the anchor's state does not count, and neither does a peer's word on it without a proof.
func TestFeedContextIsProved(t *testing.T) {
	w := newWorld(t)
	liar, honest := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
	c := openClient(t, w, nil, liar, honest)
	f, sink := openFeed(t, c, FeedConfig{})
	var chain []*worldBlock
	for range 6 {
		chain = append(chain, w.grow(w.best, 1))
	}
	until(t, f, sink, chain[5], w.genesis)
	anchor := chain[3]
	w.mu.Lock()
	forged := w.seal(codec.Block{Header: codec.Header{Parent: anchor.hash, ParentStateRoot: common.Hash{1}, Slot: chain[5].header.Slot + 1}}, &worldBlock{parent: anchor, height: 5})
	w.mu.Unlock()
	require.Eventually(t, func() bool {
		require.NoError(t, f.catchUp(t.Context(), sink))
		return f.tree.Get(forged.hash) != nil
	}, 10*time.Second, time.Millisecond)
	liar.set(func() {
		liar.lie = func(value []byte) []byte {
			value = append([]byte(nil), value...)
			value[40] ^= 1
			return value
		}
	})
	refine, err := f.Context(t.Context(), anchor.hash, nil)
	require.NoError(t, err)
	require.Equal(t, anchor.root(), refine.StateRoot)
	require.EqualValues(t, beefyRootOf(anchor.hash), refine.BeefyRoot)
	require.Positive(t, liar.count(129), "it was asked first")
	honest.set(func() { honest.refuse[129] = true })
	_, err = f.Context(t.Context(), anchor.hash, nil)
	require.ErrorIs(t, err, ErrMalformed)
	require.ErrorIs(t, err, proof.ErrState)
	_, err = f.Context(t.Context(), forged.hash, nil)
	require.ErrorIs(t, err, ErrNoState, "it is on a fork")
}

// Where everything is final at once, the lookup anchor is the newest block whose state root is known: Gray Paper 0.8.0 wants it.
func TestFeedContextOfAFinalHead(t *testing.T) {
	w := newWorld(t)
	g := startGuarantor(t, w, 1)
	f, sink := openFeed(t, openClient(t, w, nil, g), FeedConfig{})
	a := w.grow(w.best, 1)
	head := w.grow(a, 1)
	w.finalize(0)
	g.cut() // a handshake tells of finality
	until(t, f, sink, head, head)
	refine, err := f.Context(t.Context(), a.hash, nil)
	require.NoError(t, err)
	require.Equal(t, a.hash, refine.LookupAnchor)
	require.Equal(t, a.root(), refine.LookupStateRoot)
}

// A part of the state is what the root says, or the peer is caught.
func TestStateRange(t *testing.T) {
	w := newWorld(t)
	g := startGuarantor(t, w, 1)
	c := openClient(t, w, nil, g)
	b := w.grow(w.best, 1)
	from, to := proof.ChapterKey(3), proof.ChapterKey(3)
	state, err := c.State(t.Context(), 0, b.hash, from, to, 1<<20)
	require.NoError(t, err)
	require.NoError(t, state.Verify(b.root(), from, to))
	require.ErrorIs(t, state.Verify(w.genesis.root(), from, to), ErrMalformed)
	state.Entries = nil
	require.ErrorIs(t, state.Verify(b.root(), from, to), ErrMalformed, "left out")
}

func TestBlocksBothWays(t *testing.T) {
	w := newWorld(t)
	g := startGuarantor(t, w, 1)
	c := openClient(t, w, nil, g)
	var chain []*worldBlock
	for range 10 {
		chain = append(chain, w.grow(w.best, 1))
	}
	down, err := c.Blocks(t.Context(), 0, chain[5].hash, Descending, 3)
	require.NoError(t, err)
	require.Len(t, down, 3)
	up, err := c.Blocks(t.Context(), 0, chain[5].hash, Ascending, 3)
	require.NoError(t, err)
	require.Len(t, up, 3)
	for i := range 3 {
		require.Equal(t, chain[5-i].header, down[i].Header)
		require.Equal(t, chain[6+i].header, up[i].Header)
	}
	_, err = c.Blocks(t.Context(), 0, jamq.HeaderHash{1}, Descending, 3)
	require.ErrorIs(t, err, ErrRefused)
	for _, nobody := range []int{-1, 1} {
		_, err = c.Blocks(t.Context(), nobody, chain[5].hash, Descending, 3)
		require.ErrorIs(t, err, ErrInvalidConfig)
		_, err = c.State(t.Context(), nobody, chain[5].hash, proof.StateKey{}, proof.StateKey{}, 100)
		require.ErrorIs(t, err, ErrInvalidConfig)
	}
	g.set(func() { g.garbage[128] = framed(append(append([]byte{}, chain[1].raw...), chain[0].raw...)) })
	_, err = c.Blocks(t.Context(), 0, chain[1].hash, Descending, 1)
	require.ErrorIs(t, err, ErrMalformed, "more than asked for")
}

// A peer that lies about blocks is not believed; another one is asked.
func TestFeedTakesOnlyProvedBlocks(t *testing.T) {
	w := newWorld(t)
	liar, honest := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
	c := openClient(t, w, nil, liar, honest)
	f, sink := openFeed(t, c, FeedConfig{})
	require.Eventually(t, func() bool { _, _, up := c.peers[0].announcedBy(); return up }, 10*time.Second, time.Millisecond, "the liar is asked first")
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
}

// A feed goes on from where a queue left off, and fetches all that it missed, in several requests.
func TestFeedFromAnOlderRoot(t *testing.T) {
	w := newWorld(t)
	g := startGuarantor(t, w, 1)
	c := openClient(t, w, nil, g)
	var root *worldBlock
	for i := range 150 {
		if b := w.grow(w.best, 1); i == 4 {
			root = b
		}
	}
	final := w.finalize(3)
	head := w.grow(w.best, 1)
	f, sink := openFeed(t, c, FeedConfig{Root: jamq.Block{Hash: root.hash, Slot: root.header.Slot}})
	until(t, f, sink, head, final)
	require.Equal(t, uint64(146), sink.view.Best().Height)
	require.Equal(t, 4, g.count(128), "three for the gap, one for what was before the root")
	short, sink := openFeed(t, c, FeedConfig{Root: f.cfg.Root, MaxGap: 100})
	require.Eventually(t, func() bool { _, _, up := c.peers[0].announcedBy(); return up }, 10*time.Second, time.Millisecond)
	require.ErrorIs(t, short.catchUp(t.Context(), sink), ErrHistoryLost)
}

// bestSink notes what it is told is the best block.
type bestSink struct {
	*viewSink
	bests []jamq.HeaderHash
}

func (s *bestSink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	s.bests = append(s.bests, best)
	return s.viewSink.Import(ctx, b, best)
}

// Until a feed that restarts has delivered a chain, the best block stays the one that the sink had; and it knows the anchors before its root.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	g := startGuarantor(t, w, 1)
	c := openClient(t, w, nil, g)
	f, sink := openFeed(t, c, FeedConfig{})
	for range 12 {
		w.grow(w.best, 1)
	}
	final := w.finalize(3)
	best := w.grow(w.best, 1)
	until(t, f, sink, best, final)
	again, err := OpenFeed(t.Context(), c, FeedConfig{Root: jamq.Block{Hash: final.hash, Slot: final.header.Slot}, Best: best.hash})
	require.NoError(t, err)
	head := w.grow(w.best, 1)
	told := &bestSink{viewSink: sink}
	require.Eventually(t, func() bool {
		require.NoError(t, again.catchUp(t.Context(), told))
		return sink.view.Best().Hash == head.hash
	}, 10*time.Second, time.Millisecond)
	require.NotContains(t, told.bests, final.hash, "no step back to the root")
	before := final.parent.parent
	refine, err := again.Context(t.Context(), before.hash, nil)
	require.NoError(t, err)
	require.Equal(t, before.root(), refine.StateRoot)
	require.EqualValues(t, beefyRootOf(before.hash), refine.BeefyRoot)
	_, err = again.Context(t.Context(), final.parent.hash, nil)
	require.NoError(t, err, "the root's header says what was before it")
}

// A peer that does not answer in time holds nobody up: another one is asked.
func TestSlowPeer(t *testing.T) {
	w := newWorld(t)
	slow, quick := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
	c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout = 50 * time.Millisecond }, slow, quick)
	f, sink := openFeed(t, c, FeedConfig{})
	hold := make(chan struct{})
	slow.set(func() { slow.hold[128], slow.hold[129] = hold, hold })
	defer close(hold)
	require.Eventually(t, func() bool { _, _, up := c.peers[0].announcedBy(); return up }, 10*time.Second, time.Millisecond)
	var head *worldBlock
	for range 5 {
		head = w.grow(w.best, 1)
	}
	until(t, f, sink, head, w.genesis)
	require.Positive(t, slow.count(128))
	refine, err := f.Context(t.Context(), head.parent.hash, nil)
	require.NoError(t, err)
	require.EqualValues(t, beefyRootOf(head.parent.hash), refine.BeefyRoot)
}

// A peer that announces blocks that nobody has, and answers nothing, holds up its own announcements alone.
func TestInventedAnnouncements(t *testing.T) {
	const timeout = 100 * time.Millisecond
	w := newWorld(t)
	liar, honest := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
	c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout, cfg.RetryAfter = timeout, timeout }, liar, honest)
	f, sink := openFeed(t, c, FeedConfig{})
	hold := make(chan struct{})
	defer close(hold)
	liar.set(func() { liar.hold[128] = hold })
	require.Eventually(t, func() bool { _, _, up := c.peers[0].announcedBy(); return up }, 10*time.Second, time.Millisecond)
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
}

// bests tells of each best block.
type bests chan jamq.HeaderHash

func (b bests) Import(_ context.Context, _ jamq.Block, best jamq.HeaderHash) error {
	b <- best
	return nil
}

func (bests) Finalize(context.Context, jamq.HeaderHash) error { return nil }

// A peer that is away does not hold up what the others announce, however long it takes to find out.
func TestPeerIsAway(t *testing.T) {
	w := newWorld(t)
	away, honest := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
	away.down()
	socket, err := net.ListenPacket("udp", away.addr) // hears everything and says nothing
	require.NoError(t, err)
	defer func() { require.NoError(t, socket.Close()) }()
	c := openClient(t, w, func(cfg *Config) { cfg.DialTimeout = time.Minute }, away, honest)
	f, err := OpenFeed(t.Context(), c, FeedConfig{Root: jamq.Block{Hash: w.genesis.hash}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(bests, 100), make(chan error)
	go func() { ended <- f.Follow(ctx, told) }()
	deadline := time.After(20 * time.Second)
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
}

// A block from the future is not taken, nor what is built on it.
func TestBlocksFromTheFuture(t *testing.T) {
	w := newWorld(t)
	g := startGuarantor(t, w, 1)
	f, sink := openFeed(t, openClient(t, w, nil, g), FeedConfig{})
	a := w.grow(w.genesis, 1)
	until(t, f, sink, a, w.genesis)
	future := w.grow(a, f.clock.SlotAt(time.Now())+maxAhead+1000)
	_, err := f.fetchSome(t.Context(), 0, w.grow(future, 1).hash, 10)
	require.ErrorIs(t, err, ErrMalformed)
	b := w.grow(w.grow(w.grow(a, 1), 1), 1)
	until(t, f, sink, b, w.genesis)
	require.Nil(t, f.tree.Get(future.hash))
}

// Two of three must agree on finality.
func TestFinalPeers(t *testing.T) {
	w := newWorld(t)
	all := []*guarantor{startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)}
	c := openClient(t, w, nil, all...)
	f, sink := openFeed(t, c, FeedConfig{FinalPeers: 2})
	a := w.grow(w.best, 1)
	b := w.grow(a, 1)
	head := w.grow(b, 1)
	until(t, f, sink, head, w.genesis)
	require.Eventually(t, func() bool {
		for _, p := range c.peers {
			if _, leaves, up := p.announcedBy(); !up || len(leaves) == 0 || leaves[len(leaves)-1].hash != head.hash {
				return false
			}
		}
		return true
	}, 10*time.Second, time.Millisecond, "all have said what they have")
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
}

func TestFollowEnds(t *testing.T) {
	w := newWorld(t)
	g := startGuarantor(t, w, 1)
	c := openClient(t, w, nil, g)
	f, sink := openFeed(t, c, FeedConfig{})
	w.grow(w.best, 1)
	refused := errors.New("full")
	sink.refuse = refused
	require.ErrorIs(t, f.Follow(t.Context(), sink), refused)
	sink.refuse = nil
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Follow(ctx, sink) }()
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	go func() { ended <- f.Follow(context.Background(), sink) }()
	c.Close()
	require.ErrorIs(t, <-ended, ErrClosed)

	late := openClient(t, w, func(cfg *Config) { cfg.DialTimeout = 50 * time.Millisecond }, g)
	g.down()
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := OpenFeed(short, late, FeedConfig{})
	require.ErrorIs(t, err, ErrDisconnected)
	g.up()
	for _, cfg := range []FeedConfig{{FollowPeers: 2}, {FinalPeers: 2}, {RecentHistory: 2}, {MaxGap: -1}} {
		_, err := OpenFeed(t.Context(), late, cfg)
		require.ErrorIs(t, err, ErrInvalidConfig)
	}
	away := jamq.Block{Hash: jamq.HeaderHash{1}, Slot: 0}
	lost, sink := openFeed(t, late, FeedConfig{Root: away})
	require.ErrorIs(t, func() error {
		for {
			lost.connectAll(t.Context())
			w.finalize(0)
			w.grow(w.best, 1)
			if err := lost.catchUp(t.Context(), sink); errors.Is(err, ErrHistoryLost) {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}(), ErrHistoryLost)
}

// parcel is a bundle on its way.
type parcel struct {
	name string
	raw  []byte
}

// builder is a runner's host that has nothing but the network.
type builder struct {
	t    *testing.T
	w    *world
	feed *Feed
}

func (b *builder) Build(ctx context.Context, r bundlequeue.Build[parcel]) (submit.Package[parcel], error) {
	refine, err := b.feed.Context(ctx, r.Anchor.Hash, r.Prerequisites)
	if err != nil {
		return submit.Package[parcel]{}, err
	}
	raw, hash := encodePackage(b.t, b.w, refine, r.Bundle.name, 0)
	return submit.Package[parcel]{Hash: hash, Context: refine, Bundle: parcel{r.Bundle.name, raw}}, nil
}

func (b *builder) Submit(ctx context.Context, r bundlequeue.Send[parcel]) error {
	return b.feed.client.SubmitPackage(ctx, Submission{Core: r.Core, Attempt: r.Attempt, Package: r.Bundle.raw})
}

// TestRunnerOverTheNetwork is a whole builder on a network of three nodes, over UDP and in real time. One of them refuses packages now and then, one goes
// away and comes back, and connections are cut. Every bundle is accumulated once, and in order: the chain says so.
func TestRunnerOverTheNetwork(t *testing.T) {
	const slot, bundles = 40 * time.Millisecond, 20
	w := newWorld(t)
	peers := []*guarantor{startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)}
	c := openClient(t, w, nil, peers...)
	spec := jamq.Tiny()
	spec.SlotDuration = slot
	feed, err := OpenFeed(t.Context(), c, FeedConfig{})
	require.NoError(t, err)
	b := &builder{t: t, w: w, feed: feed}
	runner, err := submit.NewRunner[parcel](submit.DefaultConfig(spec), feed.Root(), b, b)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, runner.Start(ctx))
	defer runner.Stop()
	var following sync.WaitGroup
	following.Go(func() {
		if err := feed.Follow(ctx, runner); !errors.Is(err, context.Canceled) {
			t.Errorf("follow: %v", err)
		}
	})
	defer following.Wait()
	defer cancel()

	var want []string
	for i := range bundles {
		want = append(want, fmt.Sprint("bundle ", i))
	}
	waiting := want
	begun := time.Now()
	for tick := 0; ; tick++ {
		time.Sleep(slot) // this test is about real time
		w.grow(w.best, 1)
		final := w.finalize(2)
		for len(waiting) > 0 {
			if runner.Enqueue(ctx, bundlequeue.Enqueue[parcel]{Number: uint64(bundles - len(waiting) + 1), Bundle: parcel{name: waiting[0]}}) != nil {
				break
			}
			waiting = waiting[1:]
		}
		switch tick % 12 {
		case 2:
			peers[0].cut()
		case 4:
			peers[1].set(func() { peers[1].refuse[133] = !peers[1].refuse[133] })
		case 6:
			peers[2].down()
		case 9:
			peers[2].up()
		}
		if len(final.done) >= bundles {
			require.Equal(t, want, final.done)
			break
		}
		require.Less(t, time.Since(begun), time.Minute, "%d of %d", len(final.done), bundles)
	}
	t.Logf("%d bundles in %v", bundles, time.Since(begun).Round(time.Millisecond))
}
