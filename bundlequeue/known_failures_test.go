package bundlequeue

import (
	"reflect"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
)

// TestKnownFailures holds the ways in which the queues of builders are known to execute
// transactions twice, to lose them or to stop. Package told has those that depend on the clock.
func TestKnownFailures(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"01 a rebuild under the same version":                  sameVersionTwice,
		"06 a failed number freezes the head":                  failedNumberIsReused,
		"07 a number reserved and never filled":                reservedAndForgotten,
		"08 a submit error spins":                              submitErrorSpins,
		"09 v1 wins while v2 is in flight":                     firstWinsInFlight,
		"10 a failed rebuild sends half a bundle":              failedRebuild,
		"11 a rebuild on another state":                        rebuildOnPreState,
		"12 a restart forgets what is in flight":               restartRemembers,
		"14 callbacks under a lock":                            noCallbacks,
		"15 maps that are never pruned":                        mapsArePruned,
		"17 the same hash to the same guarantor":               guarantorsRotate,
		"18 a guarantee in one of two blocks imported at once": twoBlocksAtOnce,
	} {
		t.Run(name, test)
	}
}

func sameVersionTwice(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	for range 30 {
		s.run()
		s.block(nil)
	}
	info, _ := s.q.Info(1)
	require.Greater(t, len(info.Versions), 2)
	for i, v := range info.Versions[1:] {
		before := info.Versions[i]
		require.Equal(t, before.Version+1, v.Version)
		require.NotEqual(t, before.Package, v.Package)
		require.NotEqual(t, anchor.Alive, before.Dead)
		require.GreaterOrEqual(t, v.Anchor.Height, before.DeadSince.Height)
	}
}

func failedNumberIsReused(t *testing.T) {
	s := newScene(t, func(c *Config) { c.MaxVersionRetries = 0 })
	s.enqueue(1)
	s.run()
	s.blocks(4)
	s.step(FinalizedBlock{Hash: s.parent})
	require.Equal(t, uint64(1), s.q.Next())
	s.sends = nil
	s.enqueue(1)
	s.block(nil)
	pkg := s.run()[0]
	s.block(report(pkg, 0))
	s.block(accumulate(pkg, 0))
	require.Equal(t, Accumulated, s.state(1))
}

func reservedAndForgotten(t *testing.T) {
	s := newScene(t, nil)
	s.step(Reserve{Number: 1})
	s.now = s.now.Add(2 * time.Minute)
	s.step(Tick{})
	require.Equal(t, uint64(1), s.q.Next())
}

func submitErrorSpins(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.answer()
	for range 20_000 {
		if len(s.sends) > 0 {
			e := s.sends[0]
			s.sends = s.sends[1:]
			s.step(Sent{Ticket: e.Ticket})
		}
		s.step(Tick{})
	}
	require.Equal(t, uint64(1), s.q.Stats().Totals.Sends, "time stood still")
}

func firstWinsInFlight(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	v1 := s.run()[0]
	fork := s.block(nil)
	s.blocks(2)
	s.run() // v2
	s.blockOn(fork, 20, 'b', report(v1, 0))
	s.blockOn(s.parent, 21, 'b', accumulate(v1, 0))
	s.step(FinalizedBlock{Hash: s.parent})
	require.Equal(t, Finalized, s.state(1))
	require.Zero(t, s.q.Pending())
	require.Zero(t, s.q.cores.inUse()-s.q.cores.free, "nothing stays locked")
}

func failedRebuild(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	first := s.builds[0]
	s.builds = nil
	s.step(BuildFailed{Ticket: first.Ticket})
	require.Equal(t, Queued, s.state(1))
	require.Empty(t, s.sends)
	s.now = s.now.Add(time.Minute)
	s.step(Tick{})
	require.Equal(t, first.Bundle, s.builds[0].Bundle)
	require.Empty(t, s.sends)
}

func rebuildOnPreState(t *testing.T) {
	s := newScene(t, nil)
	s.step(Enqueue{Number: 1, Commitment: common.Hash{7}, Bundle: []byte("on the state after 0")})
	for range 12 {
		for _, b := range s.builds {
			require.Equal(t, "on the state after 0", string(b.Bundle))
		}
		s.run()
		s.block(nil)
	}
	info, _ := s.q.Info(1)
	require.Greater(t, len(info.Versions), 1)
	require.Equal(t, common.Hash{7}, info.Commitment)
}

func restartRemembers(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.enqueue(2)
	s.answer()
	back, err := Restore(s.q.cfg, s.q.AppendSnapshot(nil))
	require.NoError(t, err)
	require.Equal(t, s.q.Open(), back.Open())
	require.Len(t, back.Open(), 2)
}

// The queue never calls its host, so the host cannot cause a deadlock.
func noCallbacks(t *testing.T) {
	q := reflect.TypeFor[Queue]()
	for i := range q.NumField() {
		require.NotContains(t, []reflect.Kind{reflect.Func, reflect.Chan}, q.Field(i).Type.Kind(), q.Field(i).Name)
		require.NotContains(t, q.Field(i).Type.String(), "sync.")
	}
}

func mapsArePruned(t *testing.T) {
	s := newScene(t, func(c *Config) { c.RetentionWindow = 0 })
	for n := uint64(1); n <= 40; n++ {
		s.enqueue(n)
		pkg := s.run()[0]
		s.block(report(pkg, 0))
		s.block(accumulate(pkg, 0))
		s.step(FinalizedBlock{Hash: s.parent})
	}
	require.Empty(t, s.q.items)
	require.Empty(t, s.q.versions)
	require.Empty(t, s.q.builds)
	require.Empty(t, s.q.sends)
	require.Zero(t, s.q.due.Len()+s.q.waiting.Len())
}

func guarantorsRotate(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	s.answer()
	for attempt := 1; attempt <= 4; attempt++ {
		require.Equal(t, attempt, s.sends[0].Attempt)
		s.deliver()
		s.now = s.now.Add(6 * time.Second)
		s.step(Tick{})
	}
}

func twoBlocksAtOnce(t *testing.T) {
	s := newScene(t, nil)
	s.enqueue(1)
	pkg := s.run()[0]
	older := jamq.Block{Hash: jamq.HeaderHash{'x', 1}, Parent: s.parent, Slot: s.slot + 1, Reported: []jamq.Report{{Package: pkg}}}
	newer := jamq.Block{Hash: jamq.HeaderHash{'x', 2}, Parent: older.Hash, Slot: s.slot + 2}
	s.step(Imported{Block: older, Best: s.parent})
	s.step(Imported{Block: newer, Best: newer.Hash})
	require.Equal(t, Guaranteed, s.state(1))
}
