package chainview_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
)

// TestMemoryOfAccumulatedPackages lets a package become available whose
// prerequisite was accumulated a number of blocks before. The chain remembers E
// blocks (GP 12.1): up to that age the package is accumulated at once, later it
// waits in the ready queue. The same must hold if the view begins in between.
func TestMemoryOfAccumulatedPackages(t *testing.T) {
	spec := jamq.Tiny()
	e := int(spec.EpochLength)
	parent := jamq.PackageHash{1}
	for age := 1; age <= e+2; age++ {
		for _, others := range []int{0, 100} { // large blocks are searched in another way
			// Root is the block of height 0; parent is accumulated in block 1.
			v, err := chainview.New(&spec, jamq.Block{Hash: header('a', 0)})
			require.NoError(t, err)
			b := jamq.Block{Hash: header('a', 1), Parent: header('a', 0), Slot: 1, AccumulatedKnown: true, Accumulated: foreign(others)}
			b.Accumulated = append(b.Accumulated, parent)
			b.Accumulated = append(b.Accumulated, foreign(others)...)
			require.NoError(t, v.ImportBest(&b, b.Hash))
			reported := jamq.Block{Hash: header('a', age), Parent: header('a', age-1), Slot: jamq.Slot(age)}
			if age > 1 {
				grow(t, v, 'a', header('a', 1), 1, age-1)
			} else {
				reported.Hash, reported.Parent, reported.Slot = header('b', 1), header('a', 0), 1
				reported.AccumulatedKnown, reported.Accumulated = true, b.Accumulated
			}
			reported.Reported = []jamq.Report{{Hash: common.Hash{1}, Package: pkg, Prerequisites: []jamq.PackageHash{parent}}}
			require.NoError(t, v.ImportBest(&reported, reported.Hash))
			later, err := chainview.NewAt(&spec, jamq.Block{Hash: reported.Hash, Slot: reported.Slot}, v.State())
			require.NoError(t, err)

			available := jamq.Block{Hash: header('c', age+1), Parent: reported.Hash, Slot: jamq.Slot(age + 1), Available: []jamq.CoreIndex{0}}
			for name, view := range map[string]*chainview.View{"from the root": v, "from the state": later} {
				require.NoError(t, view.ImportBest(&available, available.Hash))
				s := view.State()
				if age <= e {
					require.Equal(t, []jamq.PackageHash{pkg}, s.Accumulated[len(s.Accumulated)-1], "%s, %d blocks ago, %d others", name, age, others)
					require.Empty(t, s.Ready)
				} else {
					require.Empty(t, s.Accumulated[len(s.Accumulated)-1], "%s, %d blocks ago, %d others", name, age, others)
					require.Equal(t, []chainview.ReadyReport{{Package: pkg, Unmet: []jamq.PackageHash{parent}, Since: available.Slot}}, s.Ready)
				}
			}
		}
	}
}

// foreign returns packages in an order that is not sorted.
func foreign(n int) []jamq.PackageHash {
	out := make([]jamq.PackageHash, n)
	for i := range out {
		out[i] = jamq.PackageHash{byte(37 * i), 2}
	}
	return out
}
