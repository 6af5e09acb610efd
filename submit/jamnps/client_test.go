package jamnps

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
)

// TestMain fails the tests if a goroutine is left when all of them have ended. QUIC
// would warn that a network in memory has no buffers to set.
func TestMain(m *testing.M) {
	if err := os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func openClient(t *testing.T, w *world, change func(*Config), peers ...*guarantor) *Client {
	t.Helper()
	cfg := DefaultConfig(privateKey(99), w.genesis.hash, w.codec, nil)
	for _, g := range peers {
		cfg.Peers = append(cfg.Peers, g.peer())
	}
	cfg.RetryAfter = time.Millisecond
	if change != nil {
		change(&cfg)
	}
	require.NoError(t, cfg.Validate())
	socket, err := w.listen("")
	require.NoError(t, err)
	c, err := openOn(socket, cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// encodePackage returns a package with extrinsics and, if wanted, an import.
func encodePackage(t testing.TB, w *world, context jamq.RefineContext, payload string, imports int, extrinsics ...string) ([]byte, jamq.PackageHash) {
	t.Helper()
	item := codec.WorkItem{Service: 9, Payload: []byte(payload), Imports: make([]codec.Import, imports)}
	for _, x := range extrinsics {
		item.Extrinsics = append(item.Extrinsics, codec.Extrinsic{Hash: blake2b.Sum256([]byte(x)), Length: uint32(len(x))})
	}
	p := codec.WorkPackage{Context: context, Items: []codec.WorkItem{item}}
	raw, err := w.codec.Encode(&p)
	require.NoError(t, err)
	hash, err := w.codec.PackageHash(&p)
	require.NoError(t, err)
	return raw, hash
}

// The guarantor receives each message unchanged, and each attempt goes to
// another guarantor.
func TestSubmitPackage(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := startGuarantor(t, w, 1), startGuarantor(t, w, 2)
		c := openClient(t, w, nil, a, b)
		raw, hash := encodePackage(t, w, jamq.RefineContext{Prerequisites: []jamq.PackageHash{{1}, {2}}}, strings.Repeat("x", 70_000), 0, "one", "three")
		s := Submission{Core: 1, Attempt: 1, Package: raw, Extrinsics: [][]byte{[]byte("one"), []byte("three")}}
		for range 3 {
			require.NoError(t, c.SubmitPackage(t.Context(), s))
			s.Attempt++
		}
		require.Len(t, a.submissions(), 1)
		require.Len(t, b.submissions(), 2, "core 1 begins with the second")
		require.Equal(t, append([]byte{1, 0}, raw...), b.submissions()[0][0])
		require.Equal(t, "onethree", string(b.submissions()[0][1]))
		w.mu.Lock()
		require.Equal(t, hash, w.offers[0].pkg.hash)
		require.Len(t, w.offers, 1, "the same bytes are one package")
		w.mu.Unlock()
		require.Equal(t, []string{dnsName(privateKey(99).Public().(ed25519.PublicKey))}, a.clients(), "one connection, by our name")

		s.Core = 7
		err := c.SubmitPackage(t.Context(), s)
		require.ErrorIs(t, err, ErrRefused, "no such core")
		require.Equal(t, submit.OtherGuarantor, submit.ClassOf(err))
		s.Package = make([]byte, maxPackage+1)
		err = c.SubmitPackage(t.Context(), s)
		require.ErrorIs(t, err, ErrTooLarge)
		require.Equal(t, submit.Rebuild, submit.ClassOf(err))
	})
}

func TestSubmitBundle(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, nil, g)
		raw, _ := encodePackage(t, w, jamq.RefineContext{}, "imports", 2, "data")
		segment := make([]byte, 4104)
		segment[0] = 7
		b := &Bundle{
			Submission: Submission{Package: raw, Extrinsics: [][]byte{[]byte("data")}, Attempt: 1},
			Roots:      []codec.SegmentLookup{{Package: jamq.PackageHash{1}, SegmentRoot: [32]byte{2}}},
			Segments:   [][]byte{segment, segment}, Proofs: [][][32]byte{{{1}, {2}}, nil},
		}
		require.NoError(t, c.SubmitBundle(t.Context(), b))
		require.Len(t, g.submissions(), 1)
		m := g.submissions()[0]
		require.Equal(t, append(append([]byte{0, 0, 1, 1}, make([]byte, 31)...), append([]byte{2}, make([]byte, 31)...)...), m[0])
		require.Equal(t, raw, m[1])
		require.Equal(t, "data", string(m[2]))
		require.Equal(t, append(append([]byte{}, segment...), segment...), m[3])
		require.Equal(t, append(append(append([]byte{2, 1}, make([]byte, 31)...), append([]byte{2}, make([]byte, 31)...)...), 0), m[4])
		for name, change := range map[string]func(*Bundle){
			"proof":   func(b *Bundle) { b.Proofs = b.Proofs[:1] },
			"segment": func(b *Bundle) { b.Segments[1] = segment[1:] },
		} {
			bad := *b
			bad.Segments = append([][]byte{}, b.Segments...)
			change(&bad)
			err := c.SubmitBundle(t.Context(), &bad)
			require.ErrorIs(t, err, ErrMalformed, name)
			require.Equal(t, submit.Rebuild, submit.ClassOf(err))
		}
		b.Segments, b.Proofs = nil, nil
		require.ErrorIs(t, c.SubmitBundle(t.Context(), b), ErrRefused, "the guarantor counts the segments")
	})
}

// Failures: a refusal, a peer that does not answer, one that is unreachable,
// one with another key, and one of another network.
func TestSubmitFailures(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout = 100 * time.Millisecond }, g)
		raw, _ := encodePackage(t, w, jamq.RefineContext{}, "x", 0)
		s := Submission{Attempt: 1, Package: raw}
		require.NoError(t, c.SubmitPackage(t.Context(), s))

		g.set(func() { g.refuse[133] = true })
		require.ErrorIs(t, c.SubmitPackage(t.Context(), s), ErrRefused)
		hold := make(chan struct{})
		g.set(func() { g.refuse[133], g.hold[133] = false, hold })
		err := c.SubmitPackage(t.Context(), s)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, submit.OtherGuarantor, submit.ClassOf(err))
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, c.SubmitPackage(canceled, s), context.Canceled)
		close(hold)
		g.set(func() { delete(g.hold, 133) })
		require.NoError(t, c.SubmitPackage(t.Context(), s), "the connection goes on")

		g.set(func() { g.garbage[133] = []byte("more than nothing") })
		require.ErrorIs(t, c.SubmitPackage(t.Context(), s), ErrMalformed)
		g.set(func() { delete(g.garbage, 133) })

		g.down()
		require.Error(t, c.SubmitPackage(t.Context(), s))
		g.up()
		bubble.Await(t, time.Millisecond, func() bool { return c.SubmitPackage(t.Context(), s) == nil }, "it comes back")

		stranger := openClient(t, w, func(cfg *Config) { cfg.Peers[0].Key = privateKey(5).Public().(ed25519.PublicKey) }, g)
		err = stranger.SubmitPackage(t.Context(), s)
		require.ErrorIs(t, err, ErrDisconnected)
		require.ErrorContains(t, err, "the key of another peer")
		other := openClient(t, w, func(cfg *Config) { cfg.Genesis = jamq.HeaderHash{1} }, g)
		require.ErrorIs(t, other.SubmitPackage(t.Context(), s), ErrDisconnected)
		c.Close()
		err = c.SubmitPackage(t.Context(), s)
		require.ErrorIs(t, err, ErrClosed)
		require.Equal(t, submit.Fatal, submit.ClassOf(err))
	})
}

// If a caller gives up during a connection attempt, the peer does not count as
// failed: other callers try at once.
func TestCallerGivesUp(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, func(cfg *Config) { cfg.RetryAfter = time.Minute }, g)
		raw, _ := encodePackage(t, w, jamq.RefineContext{}, "x", 0)
		over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		for range 20 {
			require.ErrorIs(t, c.SubmitPackage(over, Submission{Attempt: 1, Package: raw}), context.DeadlineExceeded)
		}
		require.NoError(t, c.SubmitPackage(t.Context(), Submission{Attempt: 1, Package: raw}))
	})
}

// If a connection is cut while a guarantor reads, the call fails at once, and
// the next attempt uses a new connection.
func TestCutInASubmission(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		c := openClient(t, w, func(cfg *Config) { cfg.RequestTimeout = time.Minute }, g)
		hold := make(chan struct{})
		g.set(func() { g.hold[133] = hold })
		raw, _ := encodePackage(t, w, jamq.RefineContext{}, strings.Repeat("x", 150_000), 0)
		result := make(chan error)
		go func() { result <- c.SubmitPackage(context.Background(), Submission{Attempt: 1, Package: raw}) }()
		bubble.Await(t, time.Millisecond, func() bool { return g.count(133) == 1 }, "the guarantor reads the package")
		g.cut()
		require.ErrorIs(t, <-result, ErrDisconnected)
		close(hold)
		g.set(func() { delete(g.hold, 133) })
		require.NoError(t, c.SubmitPackage(t.Context(), Submission{Attempt: 1, Package: raw}))
	})
}

// A node that refuses announcements to builders still accepts packages. Later
// announcements arrive on the same connection.
func TestPeerWithoutAnnouncements(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		g.set(func() { g.refuse[0] = true })
		c := openClient(t, w, nil, g)
		raw, _ := encodePackage(t, w, jamq.RefineContext{}, "x", 0)
		for range 20 {
			require.NoError(t, c.SubmitPackage(t.Context(), Submission{Attempt: 1, Package: raw}))
		}
		bubble.Await(t, time.Millisecond, func() bool { return g.count(0) > 3 }, "asked again and again")
		_, _, up := c.peers[0].announced()
		require.False(t, up)
		g.set(func() { g.refuse[0] = false })
		bubble.Await(t, time.Millisecond, func() bool { _, _, up := c.peers[0].announced(); return up }, "the peer has announced its heads")
		require.Len(t, g.clients(), 1)
	})
}

// Announcements that are none cost a peer its connection; packages are sent over the next one.
func TestMalformedAnnouncements(t *testing.T) {
	for name, garbage := range map[string][]byte{
		"short": framed(make([]byte, 35)), "leaves missing": framed(append(make([]byte, 36), 5)), "long count": framed(append(make([]byte, 36), 0xff, 0, 0, 0, 0, 0, 0, 0, 1)),
		"huge": {0xff, 0xff, 0xff, 0x7f}, "no header": append(framed(append(make([]byte, 36), 0)), framed([]byte("block"))...),
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				w := newWorld(t)
				g := startGuarantor(t, w, 1)
				g.set(func() { g.garbage[0] = garbage })
				c := openClient(t, w, nil, g)
				f := &Feed{cfg: FeedConfig{FollowPeers: 1}, client: c, log: c.log}
				bubble.Await(t, time.Millisecond, func() bool { f.connectAll(t.Context()); return len(g.clients()) > 1 }, "another connection")
				g.set(func() { delete(g.garbage, 0) })
				bubble.Await(t, time.Millisecond, func() bool {
					f.connectAll(t.Context())
					_, _, up := c.peers[0].announced()
					return up
				}, "the peer has announced its heads")
			})
		})
	}
}

// A peer without finality has any number of leaves. The client keeps the newest ones, and the
// connection.
func TestManyLeaves(t *testing.T) {
	for _, leaves := range []int{0, 1, maxLeaves, 2*maxLeaves + 1, 10 * maxLeaves} {
		bubble.Run(t, func(t *testing.T) {
			w := newWorld(t)
			hello := handshake{final: leaf{hash: w.genesis.hash}}
			for i := range leaves {
				l := leaf{slot: jamq.Slot(i + 1)}
				binary.LittleEndian.PutUint32(l.hash[:], uint32(i+1))
				hello.leaves = append(hello.leaves, l)
			}
			g := startGuarantor(t, w, 1)
			g.set(func() { g.garbage[0] = framed(hello.encode()) })
			f, err := OpenFeed(t.Context(), openClient(t, w, nil, g), FeedConfig{})
			require.NoError(t, err)
			require.Equal(t, w.genesis.hash, f.Root().Hash)
			_, kept, _ := f.client.peers[0].announced()
			require.LessOrEqual(t, len(kept), 2*maxLeaves)
			require.GreaterOrEqual(t, len(kept), min(leaves, maxLeaves))
			require.True(t, slices.Equal(hello.leaves[leaves-len(kept):], kept), "the newest ones")
			require.Len(t, g.clients(), 1)
		})
	}
}

// A count whose size in bytes overflows is not that of the leaves.
func TestHandshakeCountOverflows(t *testing.T) {
	for _, count := range []uint64{1 << 62, 1 << 63, 1<<62 + 1, math.MaxUint64, 2} {
		for size := range 80 {
			_, err := decodeHandshake(append(codec.AppendNatural(make([]byte, leafSize), count), make([]byte, size)...))
			if count == 2 && size == 2*leafSize {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, ErrMalformed, "%d leaves in %d bytes", count, size)
			}
		}
	}
}

func FuzzDecodeHandshake(f *testing.F) {
	h := handshake{final: leaf{jamq.HeaderHash{1}, 2}, leaves: []leaf{{jamq.HeaderHash{3}, 4}}}
	f.Add(h.encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := decodeHandshake(raw)
		if err == nil && string(h.encode()) != string(raw) {
			t.Fatal("decodes, and encodes to other bytes")
		}
	})
}

func FuzzDecodeState(f *testing.F) {
	f.Add(append(make([]byte, 31), 1, 2))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var last statetrie.Key
		for i := range last {
			last[i] = 0xff
		}
		var s stateRange
		if s.decodeEntries(raw, statetrie.Key{}, last) != nil {
			return
		}
		var again []byte
		for _, v := range s.Entries {
			again = append(append(again, v.Key[:]...), codec.AppendNatural(nil, uint64(len(v.Value)))...)
			again = append(again, v.Value...)
		}
		if string(again) != string(raw) {
			t.Fatal("decodes, and encodes to other bytes")
		}
	})
}

func TestGuarantorsOfACore(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		peers := []*guarantor{startGuarantor(t, w, 1), startGuarantor(t, w, 2), startGuarantor(t, w, 3)}
		c := openClient(t, w, func(cfg *Config) {
			cfg.Guarantors = func(core jamq.CoreIndex) []int { return map[jamq.CoreIndex][]int{0: {2, 0, 17}, 1: {}}[core] }
		}, peers...)
		var chosen []int
		for attempt := range 4 {
			chosen = append(chosen, c.choose(0, attempt+1).index)
		}
		require.Equal(t, []int{2, 0, 2, 0}, chosen)
		require.Equal(t, 1, c.choose(1, 1).index, "no guarantor known: all in turn")
		require.Equal(t, 2, c.choose(0, -5).index)
		require.Equal(t, 0, c.choose(0, 2).index)
		for _, attempt := range []int{math.MinInt, math.MaxInt} {
			c.choose(7, attempt) // does not panic
		}
	})
}

func TestConfigValidate(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		for field, change := range map[string]func(*Config){
			"Peers[0].Key is 0000000000000000000000000000000000000000000000000000000000000000, a point of small order": func(c *Config) { c.Peers[0].Key = make([]byte, ed25519.PublicKeySize) },
			"Key":            func(c *Config) { c.Key = nil },
			"Codec":          func(c *Config) { c.Codec = nil },
			"Peers is":       func(c *Config) { c.Peers = nil },
			"Peers[0].Key":   func(c *Config) { c.Peers[0].Key = nil },
			"Peers[0].Addr":  func(c *Config) { c.Peers[0].Addr = "nowhere" },
			"DialTimeout":    func(c *Config) { c.DialTimeout = 0 },
			"RequestTimeout": func(c *Config) { c.RequestTimeout = 0 },
			"IdleTimeout":    func(c *Config) { c.IdleTimeout = -1 },
			"RetryAfter":     func(c *Config) { c.RetryAfter = 0 },
			"MaxBlocks":      func(c *Config) { c.MaxBlocks = 0 },
			"Listen":         func(c *Config) { c.Listen = "nowhere" },
		} {
			cfg := DefaultConfig(privateKey(1), w.genesis.hash, w.codec, []Peer{{privateKey(2).Public().(ed25519.PublicKey), "127.0.0.1:1"}})
			change(&cfg)
			_, err := Open(cfg)
			require.ErrorIs(t, err, ErrInvalidConfig, field)
			require.ErrorContains(t, err, field)
		}
	})
}

// Both ways to write a key's name come to the same.
func TestNamesAgree(t *testing.T) {
	for name := range byte(50) {
		key := privateKey(name).Public().(ed25519.PublicKey)
		have, err := alternativeName(key)
		require.NoError(t, err)
		require.Equal(t, dnsName(key), have)
	}
}
