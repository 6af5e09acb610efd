package jamnps

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/submit/codec"
)

// hostileBlock is a block of about the given size whose extrinsic consists of
// empty preimages.
func hostileBlock(t *testing.T, c *codec.Codec, size int) []byte {
	t.Helper()
	header, err := c.Encode(&codec.Header{})
	require.NoError(t, err)
	n := (size - len(header) - 16) / 5
	raw := codec.AppendNatural(append(header, 0), uint64(n))
	return append(append(raw, make([]byte, 5*n)...), 0, 0, 0, 0, 0)
}

// An answer of the greatest size takes no more memory than documented: the
// message, and at most twice as much when it is decoded. The figure includes what
// has become garbage meanwhile, such as the smaller buffers of the message.
func TestMemoryOfAnAnswer(t *testing.T) {
	c, err := codec.New(codec.V072, jamq.Full())
	require.NoError(t, err)
	limit := DefaultConfig(nil, jamq.HeaderHash{}, c, nil).MaxBlocks
	raw := hostileBlock(t, c, int(limit))
	_, err = decodeBlocks(c, raw, 1)
	require.ErrorIs(t, err, ErrMalformed)

	// A block with as many as a codec takes is decoded, and no second one with it.
	many := hostileBlock(t, c, 900_000)
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	blocks, err := decodeBlocks(c, bytes.Repeat(many, int(limit)/len(many)), 64)
	runtime.ReadMemStats(&end)
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	require.Less(t, end.TotalAlloc-start.TotalAlloc, uint64(limit)+8<<20)

	digests := codec.Block{Extrinsic: codec.Extrinsics{Guarantees: make([]codec.Guarantee, 341)}}
	for i := range digests.Extrinsic.Guarantees {
		report := &digests.Extrinsic.Guarantees[i].Report
		report.Digests = slices.Grow(report.Digests, 600)[:600]
	}
	raw, err = c.Encode(&digests)
	require.NoError(t, err)
	digests = codec.Block{}
	require.Less(t, len(raw), int(limit))
	framed := append(binary.LittleEndian.AppendUint32(nil, uint32(len(raw))), raw...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	message, err := readMessage(bytes.NewReader(framed), limit)
	require.NoError(t, err)
	blocks, err = decodeBlocks(c, message, 64)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	require.Equal(t, raw, message)
	peak := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d MiB take %d MiB", len(raw)>>20, peak>>20)
	require.Less(t, peak, uint64(len(raw))*34/10)
	require.Less(t, peak, uint64(64<<20))
}

// If an answer with many blocks would be too large, fewer are requested.
func TestLargeBlocks(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		g := startGuarantor(t, w, 1)
		head := w.genesis
		for range 20 {
			head = w.grow(head, 1)
		}
		c := openClient(t, w, func(cfg *Config) { cfg.MaxBlocks = uint32(2 * len(head.raw)) }, g)
		f, sink := openFeed(t, c, FeedConfig{})
		until(t, f, sink, head, w.genesis)
	})
}

// A block with many small preimages is valid: a service decides how many it requests. The feed
// passes it.
func TestManyPreimages(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		f, sink := openFeed(t, openClient(t, w, nil, startGuarantor(t, w, 1)), FeedConfig{})
		contents := codec.Extrinsics{Preimages: make([]codec.Preimage, 20_000)}
		for i := range contents.Preimages {
			contents.Preimages[i] = codec.Preimage{Service: 7, Data: binary.BigEndian.AppendUint16(nil, uint16(i))}
		}
		many := w.invent(w.genesis, 1, contents)
		head := w.invent(many, 2, codec.Extrinsics{})
		until(t, f, sink, head, w.genesis)
	})
}
