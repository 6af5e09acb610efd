package chainview_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
)

// A package that another one named before it was watched keeps its low number; its own
// prerequisites get higher ones. Restore reads traces by number and links only those already read,
// so it loses the links.
func TestRestoreLosesLinks(t *testing.T) {
	v := newView(t)
	grow(t, v, 'a', header('a', 0), 0, 3)
	own, foreign, later := jamq.PackageHash{1}, jamq.PackageHash{2}, jamq.PackageHash{3}
	watch(t, v, later, chainview.Package{Anchor: header('a', 2), LookupAnchorSlot: 3, Prerequisites: []jamq.PackageHash{own}})
	watch(t, v, own, chainview.Package{Anchor: header('a', 2), LookupAnchorSlot: 3, Prerequisites: []jamq.PackageHash{foreign}})
	spec := jamq.Tiny()
	restored, err := chainview.Restore(&spec, v.AppendSnapshot(nil))
	require.NoError(t, err)
	b4 := jamq.Block{Hash: header('a', 4), Parent: header('a', 3), Slot: 4, Reported: []jamq.Report{{Package: foreign, Core: 0}}}
	b9 := jamq.Block{Hash: header('a', 9), Parent: header('a', 4), Slot: 9} // U = 5 slots later
	for _, w := range []*chainview.View{v, restored} {
		for _, b := range []jamq.Block{b4, b9} {
			require.NoError(t, w.ImportBest(&b, b.Hash))
		}
	}
	require.Equal(t, status(t, v, own), status(t, restored, own))
	v.Forget(later)
	v.Forget(own)
	restored.Forget(later)
	restored.Forget(own)
	_, leak := restored.Trace(foreign)
	require.False(t, leak, "leak")
}
