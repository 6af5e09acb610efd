package builder

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
)

// sample returns a block, a package and a checkpoint with all fields set.
func sample() (block, Package, *checkpoint) {
	b := block{Number: 3, PreRoot: common.Hash{1}, Root: common.Hash{2}, Body: "body", raw: []byte(`"body"`), serial: 9, commitment: common.Hash{3}}
	refine := jamq.RefineContext{
		Anchor: jamq.HeaderHash{1}, StateRoot: common.Hash{2}, BeefyRoot: common.Hash{3}, LookupAnchor: jamq.HeaderHash{4}, LookupAnchorSlot: 5,
		AnchorSlot: 6, LookupStateRoot: common.Hash{7}, Prerequisites: []jamq.PackageHash{{8}},
	}
	late := b
	late.Progress = Progress{State: bundlequeue.Finalized, Version: 2, Package: jamq.PackageHash{4}, Core: 5, At: anchor.Point{Hash: jamq.HeaderHash{6}, Slot: 7, Height: 8}}
	final := b
	final.Body, final.raw = nil, nil
	return b, Package{Hash: jamq.PackageHash{9}, Context: refine, Data: []byte("data")},
		&checkpoint{serial: 11, made: true, records: 2, final: final, blocks: []block{b, late}}
}

// newStored returns an engine that encodes bodies.
func newStored[B any](codec Codec[B]) *engine { return &engine{host: door[B]{codec: codec}} }

// TestCodecKeepsBodies: a body that JSON would change is refused, because the rollup would apply
// another one after a restart.
func TestCodecKeepsBodies(t *testing.T) {
	s := newStored(jsonCodec[[]string]{})
	_, err := s.encode([]string{"pay \xff"})
	require.ErrorIs(t, err, ErrCodec)
	for _, body := range [][]string{nil, {}, {"", "pay \ufffd", "\u2028<&>"}} {
		raw, err := s.encode(body)
		require.NoError(t, err)
		have, err := s.host.decode(raw)
		require.NoError(t, err)
		require.Equal(t, body, have)
	}
	raw, err := newStored(jsonCodec[[]byte]{}).encode([]byte("pay \xff"))
	require.NoError(t, err)
	have, err := jsonCodec[[]byte]{}.Decode(raw)
	require.NoError(t, err)
	require.Equal(t, []byte("pay \xff"), have)
}

// TestStored: decoding is the inverse of encoding.
func TestStored(t *testing.T) {
	e := newStored(jsonCodec[string]{})
	b, pkg, point := sample()
	have, err := readBlock(appendBlock(nil, &b))
	require.NoError(t, err)
	require.NoError(t, e.decode(&have))
	require.Equal(t, b, have)
	sent, err := readPackage(appendPackage(nil, &pkg))
	require.NoError(t, err)
	require.Equal(t, pkg, sent)
	again, err := e.readCheckpoint(appendCheckpoint(nil, point))
	require.NoError(t, err)
	require.Equal(t, point, again)
}

// FuzzStored: nonsense is refused, and an accepted input has the same content when it is encoded
// and decoded again.
func FuzzStored(f *testing.F) {
	e := newStored(jsonCodec[string]{})
	b, pkg, point := sample()
	f.Add(appendBlock(nil, &b), appendPackage(nil, &pkg), appendCheckpoint(nil, point))
	f.Fuzz(func(t *testing.T, raw, sent, begin []byte) {
		if b, err := readBlock(raw); err == nil {
			again, err := readBlock(appendBlock(nil, &b))
			require.NoError(t, err)
			require.Equal(t, b, again)
		}
		if p, err := readPackage(sent); err == nil {
			again, err := readPackage(appendPackage(nil, &p))
			require.NoError(t, err)
			require.Equal(t, p, again)
		}
		if c, err := e.readCheckpoint(begin); err == nil {
			again, err := e.readCheckpoint(appendCheckpoint(nil, c))
			require.NoError(t, err)
			require.Equal(t, c, again)
		}
	})
}
