package chainview_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/jamtest"
)

// saved returns the snapshot of a view in the midst of a busy chain.
func saved(t testing.TB) []byte {
	t.Helper()
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 3)
	cfg.ForeignLoad, cfg.FinalityLag, cfg.MaxForkDepth, cfg.ForkProbability = 0.7, 4, 3, 0.3
	c, err := jamtest.New(cfg)
	require.NoError(t, err)
	spec := jamq.Tiny()
	v, err := chainview.New(&spec, c.Best())
	require.NoError(t, err)
	for i := range 40 {
		if context, err := c.Context(1); err == nil {
			p := jamtest.NewPackage(1, context, []byte{byte(i)})
			_, err := v.Watch(p.Hash, chainview.Package{Anchor: context.Anchor, LookupAnchorSlot: context.LookupAnchorSlot})
			require.NoError(t, err)
			require.NoError(t, c.Submit(p, jamq.CoreIndex(i%2), 0))
		}
		u := c.Advance()
		for _, b := range u.Imported {
			require.NoError(t, v.Import(&b))
		}
		require.NoError(t, v.SetBest(u.Best))
		require.NoError(t, v.Finalize(u.Finalized))
	}
	v.Changes(func(*chainview.Trace) {})
	return v.AppendSnapshot(nil)
}

func TestSnapshotRestoresTheView(t *testing.T) {
	spec := jamq.Tiny()
	b := saved(t)
	v, err := chainview.Restore(&spec, b)
	require.NoError(t, err)
	require.Equal(t, b, v.AppendSnapshot(nil))
	v.Changes(func(t *chainview.Trace) { panic("nothing has changed by being restored") })
	for _, cut := range []int{0, 1, len(b) / 2, len(b) - 1} {
		_, err := chainview.Restore(&spec, b[:cut])
		require.ErrorIs(t, err, chainview.ErrCorrupt)
	}
	spec.Cores = 0
	_, err = chainview.Restore(&spec, b)
	require.ErrorIs(t, err, jamq.ErrInvalidSpec)
}

// Whatever the bytes, Restore does not panic, and what it takes can be used.
func FuzzRestore(f *testing.F) {
	f.Add(saved(f))
	spec := jamq.Tiny()
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := chainview.Restore(&spec, b)
		if err != nil {
			return
		}
		best := v.Best()
		next := jamq.Block{Hash: jamq.HeaderHash{0xfe, 1}, Parent: best.Hash, Slot: best.Slot.Add(1)}
		if v.ImportBest(&next, next.Hash) == nil {
			_ = v.Finalize(next.Hash)
		}
		v.State()
		v.AppendSnapshot(nil)
	})
}
