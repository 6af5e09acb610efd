package jamtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// The gas of a block defers what waits in the ready queue, in order, and never what has no
// prerequisites (GP 12.18).
func TestGasDefersTheReadyQueue(t *testing.T) {
	c, err := New(DefaultConfig(jamq.Tiny(), 1))
	require.NoError(t, err)
	full := c.cfg.Spec.MaxAccumulateGas
	require.Equal(t, 2*full, c.cfg.Spec.BlockAccumulateGas)
	make := func(name byte, gas uint64) *Package {
		p := &Package{Hash: jamq.PackageHash{name}, Gas: gas}
		c.packages[p.Hash] = p
		return p
	}
	free := []jamq.PackageHash{make(1, full).Hash}
	queue := []*Package{make(2, full/2), make(3, full), make(4, 0)}
	require.Equal(t, []jamq.PackageHash{{2}}, c.withinGas(free, queue), "3 does not fit, and 4 is behind it")
	require.Equal(t, []jamq.PackageHash{{2}, {3}, {4}}, c.withinGas(nil, queue))
	require.Empty(t, c.withinGas([]jamq.PackageHash{{1}, make(5, full).Hash, make(6, full).Hash}, queue))

	// A deferred report stays in the queue, and runs in the next block.
	parent := c.best
	child := c.childOf(parent, 1)
	parent.ready = []waiting{{pkg: queue[0]}, {pkg: queue[1]}, {pkg: queue[2]}}
	c.accumulate(child, []*report{{pkg: c.packages[free[0]]}})
	require.Equal(t, []jamq.PackageHash{{1}, {2}}, child.Accumulated)
	require.Len(t, child.ready, 2)
	next := c.childOf(child, 2)
	c.accumulate(next, nil)
	require.Equal(t, []jamq.PackageHash{{3}, {4}}, next.Accumulated)
}

// While the chain is congested, reports that wait in the ready queue are not accumulated, and other
// reports are.
func TestCongested(t *testing.T) {
	c, err := New(DefaultConfig(jamq.Tiny(), 1))
	require.NoError(t, err)
	waits := &Package{Hash: jamq.PackageHash{1}}
	c.packages[waits.Hash] = waits
	require.NoError(t, c.SetFaults(Faults{ReportLatency: c.cfg.ReportLatency, Congested: true}))
	require.True(t, c.Faults().Congested)
	free := &Package{Hash: jamq.PackageHash{2}}
	c.packages[free.Hash] = free
	child := c.childOf(c.best, 1)
	c.best.ready = []waiting{{pkg: waits}}
	c.accumulate(child, []*report{{pkg: free}})
	require.Equal(t, []jamq.PackageHash{{2}}, child.Accumulated)
	require.NoError(t, c.SetFaults(Faults{ReportLatency: c.cfg.ReportLatency}))
	next := c.childOf(child, 2)
	c.accumulate(next, nil)
	require.Equal(t, []jamq.PackageHash{{1}}, next.Accumulated)
}
