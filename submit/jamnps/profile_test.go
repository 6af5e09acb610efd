package jamnps

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
)

// manners are the ways in which a peer differs from the text of JAMNP-S. The zero value follows it.
type manners struct {
	alpn         []string // endings of its protocols; nil: for builders and for nodes
	opensUp      bool     // opens an UP 0 stream itself as well
	oneUp        bool     // resets all UP 0 streams but the one with the greatest id
	oldestUpOnly bool     // announces blocks only on the oldest of several UP 0 streams
	dropsOnReset bool     // ends the connection if its peer resets an UP 0 stream
	surplus      bool     // answers with one block more than requested
	since        int      // the height of the oldest block that it has
	single       bool     // answers with one block, however many are requested
	dropsOnState bool     // ends the connection at a request of the state (CE 129)
	finalIsBest  bool     // has no finality: each block is final at once, and there are no leaves
	finalIsZero  bool     // has no finality: the block of zeros is final
	bytewise     bool     // writes each byte by itself
	stopsUp      bool     // wants no announcements: stops the other half of its UP 0 streams
}

func (m *manners) protocols(genesis []byte) (all []string) {
	endings := m.alpn
	if endings == nil {
		endings = []string{"/builder", ""}
	}
	for _, ending := range endings {
		all = append(all, fmt.Sprintf("jamnp-s/0/%x%s", genesis, ending))
	}
	return all
}

// profiles are the manners of known nodes. The facts are from the public source of typeberry 0.11.
var profiles = map[string]manners{
	"strict":                     {},
	"strict, opens UP 0":         {opensUp: true, oneUp: true},
	"builders only":              {alpn: []string{"/builder"}},
	"nodes only":                 {alpn: []string{""}},
	"typeberry":                  {opensUp: true, oldestUpOnly: true, dropsOnReset: true, surplus: true, finalIsBest: true},
	"typeberry, nodes only":      {alpn: []string{""}, opensUp: true, oldestUpOnly: true, dropsOnReset: true, surplus: true, finalIsBest: true},
	"opens UP 0, announces once": {opensUp: true, oldestUpOnly: true},
	"no finality":                {finalIsZero: true},
	"writes bytes":               {bytewise: true},
	"stops UP 0":                 {stopsUp: true},
}

// A peer that closes the connection at requests of the state, as typeberry 0.11 does, stays
// connected, because the feed requests the guarantors from other peers only.
func TestPeerWithoutState(t *testing.T) {
	for _, more := range []int{0, 1} {
		bubble.Run(t, func(t *testing.T) {
			w := newWorld(t)
			g := startPeer(t, w, 1, manners{dropsOnState: true})
			peers := []*guarantor{g}
			for i := range more {
				peers = append(peers, startGuarantor(t, w, byte(2+i)))
			}
			c := openClient(t, w, func(cfg *Config) { cfg.RetryAfter = 2 * time.Second }, peers...)
			f, sink := openFeed(t, c, FeedConfig{})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- f.Follow(ctx, sink) }()
			for range 100 {
				w.grow(w.best, max(1, c.clock.SlotAt(time.Now())-w.best.header.Slot))
				time.Sleep(w.spec.SlotDuration)
			}
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.LessOrEqual(t, g.count(129), maxStateDrops)
			require.LessOrEqual(t, g.count(0), 1+maxStateDrops, "connections")
			require.Equal(t, more > 0, c.assigned.Load() != nil)
		})
	}
}

// The feed against every profile, on a chain that begins with its genesis: it follows 100 blocks
// live over one connection, with as many UP 0 streams as the two sides open, and takes a refine
// context.
func TestFeedAgainstProfiles(t *testing.T) {
	for name, m := range profiles {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				w := newWorld(t)
				g := startPeer(t, w, 1, m)
				f, sink := openFeed(t, openClient(t, w, func(cfg *Config) { cfg.RetryAfter = 2 * time.Second }, g), FeedConfig{})
				require.Equal(t, w.genesis.hash, f.Root().Hash, "the chain is young")
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- f.Follow(ctx, sink) }()
				var head *worldBlock
				for range 100 {
					head = w.grow(w.best, 1)
					w.finalize(2)
					time.Sleep(6 * time.Second)
				}
				anchor := head.parent.parent
				refine, err := f.Context(t.Context(), anchor.hash, nil)
				require.NoError(t, err)
				require.EqualValues(t, anchor.root(), refine.StateRoot)
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
				require.Equal(t, head.hash, sink.view.Best().Hash)
				require.Equal(t, uint64(100), sink.view.Best().Height)
				require.Len(t, g.clients(), 1, "one connection")
				require.Equal(t, 1, g.count(0), "one UP 0 stream of the client")
			})
		})
	}
}

// Blocks in an answer after one that cannot be verified are requested again. They do not take the
// sound ones with them.
func TestPartlySoundAnswer(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, nil, g)
		f, _ := openFeed(t, c, FeedConfig{})
		a := w.grow(w.best, 1)
		b := w.grow(a, 1)
		broken := append([]byte{}, a.raw...)
		broken[len(broken)-70] ^= 1 // in the extrinsic
		g.set(func() { g.garbage[128] = framed(append(append([]byte{}, b.raw...), broken...)) })
		blocks, err := f.fetchSome(t.Context(), 0, b.hash, 2)
		require.NoError(t, err)
		require.Len(t, blocks, 1)
		require.Equal(t, b.hash, blocks[0].Block.Hash)
		require.Equal(t, jamq.Slot(2), blocks[0].Block.Slot)
	})
}

// The client's first flight is one packet: nodes have been seen to fail at a ClientHello in two.
func TestFirstFlight(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		silent, err := w.listen("")
		require.NoError(t, err)
		defer silent.Close()
		g := startGuarantor(t, w, 1)
		g.down()
		g.addr = silent.LocalAddr().String()
		c := openClient(t, w, func(cfg *Config) { cfg.DialTimeout = time.Second }, g)
		ended := make(chan error, 1)
		go func() {
			_, err := c.connect(t.Context(), c.peers[0])
			ended <- err
		}()
		packet := make([]byte, 2000)
		_, _, err = silent.ReadFrom(packet)
		require.NoError(t, err)
		// The second packet of a flight follows at once, a repetition much later.
		require.NoError(t, silent.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
		_, _, err = silent.ReadFrom(packet)
		require.Error(t, err, "a second packet")
		require.ErrorIs(t, <-ended, ErrDisconnected)
	})
}
