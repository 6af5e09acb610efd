package builder

import (
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// sample returns a bundle and a checkpoint with all fields set.
func sample() (bundle[string], *checkpoint[string]) {
	block := Block[string]{Number: 3, PreRoot: common.Hash{1}, Root: common.Hash{2}, Body: "body", raw: []byte(`"body"`), serial: 9, commitment: common.Hash{3}}
	refine := jamq.RefineContext{
		Anchor: jamq.HeaderHash{1}, StateRoot: common.Hash{2}, BeefyRoot: common.Hash{3}, LookupAnchor: jamq.HeaderHash{4}, LookupAnchorSlot: 5,
		AnchorSlot: 6, LookupStateRoot: common.Hash{7}, Prerequisites: []jamq.PackageHash{{8}},
	}
	late := block
	late.Progress = Progress{State: bundlequeue.Finalized, Version: 2, Package: jamq.PackageHash{4}, Core: 5, At: anchor.Point{Hash: jamq.HeaderHash{6}, Slot: 7, Height: 8}}
	final := block
	final.Body, final.raw = "", nil
	return bundle[string]{block, &Package{Hash: jamq.PackageHash{9}, Context: refine, Data: []byte("data")}},
		&checkpoint[string]{serial: 11, made: true, records: 2, final: final, blocks: []Block[string]{block, late}}
}

func newStored[B any](codec Codec[B]) stored[B] { return stored[B]{codec, new(atomic.Bool)} }

// TestCodecKeepsBodies: a body that JSON would change is refused, because the rollup would apply
// another one after a restart.
func TestCodecKeepsBodies(t *testing.T) {
	s := newStored(JSON[[]string]{})
	_, err := s.encode([]string{"pay \xff"})
	require.ErrorIs(t, err, ErrCodec)
	for _, body := range [][]string{nil, {}, {"", "pay \ufffd", "\u2028<&>"}} {
		raw, err := s.encode(body)
		require.NoError(t, err)
		have, err := s.codec.Decode(raw)
		require.NoError(t, err)
		require.Equal(t, body, have)
	}
	raw, err := newStored(JSON[[]byte]{}).encode([]byte("pay \xff"))
	require.NoError(t, err)
	have, err := JSON[[]byte]{}.Decode(raw)
	require.NoError(t, err)
	require.Equal(t, []byte("pay \xff"), have)
}

// TestStored: decoding is the inverse of encoding.
func TestStored(t *testing.T) {
	s := newStored(JSON[string]{})
	full, point := sample()
	for _, want := range []bundle[string]{full, {block: full.block}} {
		have, err := s.DecodeBundle(s.AppendBundle(nil, want))
		require.NoError(t, err)
		require.Equal(t, want, have)
	}
	have, err := s.readCheckpoint(s.appendCheckpoint(nil, point))
	require.NoError(t, err)
	require.Equal(t, point, have)
}

// FuzzStored: nonsense is refused, and an accepted input has the same content when it is encoded
// and decoded again.
func FuzzStored(f *testing.F) {
	s := newStored(JSON[string]{})
	full, point := sample()
	f.Add(s.AppendBundle(nil, full), s.appendCheckpoint(nil, point))
	f.Fuzz(func(t *testing.T, raw, begin []byte) {
		if b, err := s.DecodeBundle(raw); err == nil {
			again, err := s.DecodeBundle(s.AppendBundle(nil, b))
			require.NoError(t, err)
			require.Equal(t, b, again)
		}
		if c, err := s.readCheckpoint(begin); err == nil {
			again, err := s.readCheckpoint(s.appendCheckpoint(nil, c))
			require.NoError(t, err)
			require.Equal(t, c, again)
		}
	})
}
