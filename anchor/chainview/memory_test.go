package chainview_test

import (
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
)

// TestMemoryOfAccumulatedPackages lets a package become available whose
// prerequisite was accumulated a number of blocks before. The chain remembers E
// blocks (GP 12.1): up to that age the package is accumulated at once, later it
// waits in the ready queue.
func TestMemoryOfAccumulatedPackages(t *testing.T) {
	spec := jamq.Tiny()
	for age := 1; age <= int(spec.EpochLength)+2; age++ {
		for _, others := range []int{0, 100} { // large blocks are searched in another way
			t.Run(fmt.Sprintf("%d blocks, %d others", age, others), func(t *testing.T) {
				blocks := remembered(age, others)
				last := blocks[len(blocks)-1]
				best, side := newView(t), newView(t)
				for _, b := range blocks[:len(blocks)-1] {
					require.NoError(t, best.ImportBest(&b, b.Hash))
					require.NoError(t, side.Import(&b))
				}
				// A view that begins in between remembers by the state that it is given.
				before := best.Best()
				later, err := chainview.NewAt(&spec, jamq.Block{Hash: before.Hash, Slot: before.Slot}, best.State())
				require.NoError(t, err)
				for name, v := range map[string]*chainview.View{"best chain": best, "other fork": side, "later": later} {
					require.NoError(t, v.Import(&last))
					require.NoError(t, v.SetBest(last.Hash))
					s := v.State()
					if age <= int(spec.EpochLength) {
						require.Equal(t, []jamq.PackageHash{pkg}, s.Accumulated[len(s.Accumulated)-1], name)
						require.Empty(t, s.Ready, name)
					} else {
						require.Empty(t, s.Accumulated[len(s.Accumulated)-1], name)
						require.Equal(t, []chainview.ReadyReport{{Package: pkg, Unmet: []jamq.PackageHash{{1}}, Since: last.Slot}}, s.Ready, name)
					}
				}
			})
		}
	}
}

// remembered returns blocks of which the last makes pkg available and the one
// that is age blocks older accumulates its prerequisite, among others.
func remembered(age, others int) []jamq.Block {
	var blocks []jamq.Block
	for slot := 1; slot <= age+1; slot++ {
		blocks = append(blocks, jamq.Block{Hash: header('a', slot), Parent: header('a', slot-1), Slot: jamq.Slot(slot)})
	}
	first, reports, last := &blocks[0], &blocks[age-1], &blocks[age]
	first.AccumulatedKnown = true
	first.Accumulated = append(append(foreign(others), jamq.PackageHash{1}), foreign(others)...)
	reports.Reported = []jamq.Report{{Hash: common.Hash{1}, Package: pkg, Prerequisites: []jamq.PackageHash{{1}}}}
	last.Available = []jamq.CoreIndex{0}
	return blocks
}

// TestReadyQueueRunsFromTheOldestOn unlocks two packages at once. The one that
// became available first comes first, also if its place in the epoch is the
// greater one (GP 12.10).
func TestReadyQueueRunsFromTheOldestOn(t *testing.T) {
	spec := jamq.Tiny()
	parent, older, newer := jamq.PackageHash{1}, jamq.PackageHash{3}, jamq.PackageHash{2}
	v, err := chainview.NewAt(&spec, jamq.Block{Hash: header('a', 13), Slot: 13}, chainview.State{
		Cores: []chainview.CoreReport{{Hash: common.Hash{1}, Package: parent, Since: 13}, {}},
		Ready: []chainview.ReadyReport{
			{Package: newer, Unmet: []jamq.PackageHash{parent}, Since: 12}, // place 0
			{Package: older, Unmet: []jamq.PackageHash{parent}, Since: 11}, // place 11
		},
	})
	require.NoError(t, err)
	b := jamq.Block{Hash: header('a', 14), Parent: header('a', 13), Slot: 14, Available: []jamq.CoreIndex{0}}
	require.NoError(t, v.ImportBest(&b, b.Hash))
	s := v.State()
	require.Equal(t, []jamq.PackageHash{parent, older, newer}, s.Accumulated[len(s.Accumulated)-1])
}

// A block accumulates the packages that it unlocks, and those that these unlock
// (GP 12.8).
func TestReadyQueueUnlocksInRounds(t *testing.T) {
	spec := jamq.Tiny()
	first, second, third := jamq.PackageHash{1}, jamq.PackageHash{3}, jamq.PackageHash{2}
	v, err := chainview.NewAt(&spec, jamq.Block{Hash: header('a', 13), Slot: 13}, chainview.State{
		Cores: []chainview.CoreReport{{Hash: common.Hash{1}, Package: first, Since: 13}, {}},
		Ready: []chainview.ReadyReport{
			{Package: third, Unmet: []jamq.PackageHash{second}, Since: 12},
			{Package: second, Unmet: []jamq.PackageHash{first}, Since: 12},
		},
	})
	require.NoError(t, err)
	b := jamq.Block{Hash: header('a', 14), Parent: header('a', 13), Slot: 14, Available: []jamq.CoreIndex{0}}
	require.NoError(t, v.ImportBest(&b, b.Hash))
	s := v.State()
	require.Equal(t, []jamq.PackageHash{first, second, third}, s.Accumulated[len(s.Accumulated)-1])
	require.Empty(t, s.Ready)
}

// Blocks of different forks share the queue of their parent. A report that a
// block unlocks on one fork stays locked on the other one.
func TestReadyQueueOfForks(t *testing.T) {
	spec := jamq.Tiny()
	first, waiting, other := jamq.PackageHash{1}, jamq.PackageHash{2}, jamq.PackageHash{3}
	queue := func() []chainview.ReadyReport {
		return []chainview.ReadyReport{{Package: waiting, Unmet: []jamq.PackageHash{first, other}, Since: 12}}
	}
	v, err := chainview.NewAt(&spec, jamq.Block{Hash: header('a', 13), Slot: 13}, chainview.State{
		Cores: []chainview.CoreReport{{Hash: common.Hash{1}, Package: first, Since: 13}, {}}, Ready: queue(),
	})
	require.NoError(t, err)
	a := jamq.Block{Hash: header('a', 14), Parent: header('a', 13), Slot: 14, Available: []jamq.CoreIndex{0}}
	require.NoError(t, v.ImportBest(&a, a.Hash))
	require.Equal(t, []jamq.PackageHash{other}, v.State().Ready[0].Unmet)
	b := jamq.Block{Hash: header('b', 14), Parent: header('a', 13), Slot: 14}
	require.NoError(t, v.ImportBest(&b, b.Hash))
	require.Equal(t, queue(), v.State().Ready)
}

// foreign returns packages in an order that is not sorted.
func foreign(n int) []jamq.PackageHash {
	out := make([]jamq.PackageHash, n)
	for i := range out {
		out[i] = jamq.PackageHash{byte(37 * i), 2}
	}
	return out
}
