package wire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoundTrip(t *testing.T) {
	b := AppendUint(nil, 1<<63)
	b = AppendInt(b, -5)
	b = AppendBool(b, true)
	b = AppendBytes(b, []byte("abc"))
	b = AppendHash(b, [32]byte{7})
	b = AppendHashes(b, [][32]byte{{1}, {2}})
	r := NewReader(b)
	require.Equal(t, uint64(1<<63), r.Uint())
	require.Equal(t, int64(-5), r.Int())
	require.True(t, r.Bool())
	require.Equal(t, []byte("abc"), r.Bytes())
	require.Equal(t, [32]byte{7}, ReadHash[[32]byte](r))
	require.Equal(t, [][32]byte{{1}, {2}}, ReadHashes[[32]byte](r))
	require.NoError(t, r.Done())

	for cut := range b {
		r := NewReader(b[:cut])
		r.Uint()
		r.Int()
		r.Bool()
		r.Bytes()
		ReadHash[[32]byte](r)
		ReadHashes[[32]byte](r)
		require.ErrorIs(t, r.Done(), ErrCorrupt, "cut to %d bytes", cut)
	}
}

func TestRefusals(t *testing.T) {
	r := NewReader([]byte{2})
	require.False(t, r.Bool() && r.Err() == nil)
	require.ErrorIs(t, r.Err(), ErrCorrupt)
	r = NewReader([]byte{9})
	r.UintBelow(9, "core")
	require.ErrorContains(t, r.Err(), "core is 9, want below 9")
	r = NewReader(AppendUint(nil, 1<<40))
	require.Zero(t, r.Count(32))
	require.ErrorIs(t, r.Err(), ErrCorrupt)
	r = NewReader([]byte{1, 2})
	r.Uint()
	require.ErrorContains(t, r.Done(), "1 bytes too many")
}

func FuzzReader(f *testing.F) {
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.Clone(b))
		for r.Err() == nil && len(r.rest) > 0 {
			switch r.UintBelow(5, "kind") {
			case 0:
				r.Int()
			case 1:
				r.Bytes()
			case 2:
				ReadHashes[[32]byte](r)
			case 3:
				r.Bool()
			default:
				r.Uint()
			}
		}
	})
}
