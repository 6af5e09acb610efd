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

// TestKnownFailures holds the ways in which builders' queues are known to execute transactions twice, lose them or stop.
func TestKnownFailures(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"01 a rebuild under the same version":                  sameVersionTwice,
		"02 one time-out bumps every younger block":            timeoutBumpsYounger,
		"03 an event between dequeue and mark-submitted":       eventBetween,
		"04 a time-out that counts from the first send":        timeoutFromFirstSend,
		"05 accumulated after the transactions were released":  lateAccumulation,
		"06 a failed number freezes the head":                  failedNumberIsReused,
		"07 a number reserved and never filled":                reservedAndForgotten,
		"08 a submit error spins":                              submitErrorSpins,
		"09 v1 wins while v2 is in flight":                     firstWinsInFlight,
		"10 a failed rebuild sends half a bundle":              failedRebuild,
		"11 a rebuild on another state":                        rebuildOnPreState,
		"12 a restart forgets what is in flight":               restartRemembers,
		"13 a late guarantee moves the status back":            lateGuarantee,
		"14 callbacks under a lock":                            noCallbacks,
		"15 maps that are never pruned":                        mapsArePruned,
		"16 a foreign guarantee costs all blocks":              foreignIsFree,
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

func timeoutBumpsYounger(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, "one"))
	pkg := s.submit()[0]
	s.wait(50 * time.Second)
	s.submit()
	s.ok(s.s.OnGuaranteed(s.now, pkg))
	s.ok(s.s.OnAccumulated(s.now, pkg))
	s.ok(s.s.Enqueue(s.now, 2, common.Hash{}, "two"))
	s.submit()
	s.wait(time.Second)
	s.ok(s.s.Enqueue(s.now, 3, common.Hash{}, "three"))
	s.submit()
	s.wait(30 * time.Second)
	require.Equal(t, Submitted, s.state(2))
	require.Equal(t, Submitted, s.state(3))
	require.Zero(t, s.s.Stats().Totals.Died)
}

func eventBetween(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, "one"))
	pkg := s.submit()[0]
	s.wait(6 * time.Second)
	job, ok := s.s.Dequeue()
	require.True(t, ok)
	s.ok(s.s.OnAccumulated(s.now, pkg))
	s.ok(s.s.MarkSubmitted(s.now, job, pkg, jamq.RefineContext{}, ""))
	require.Equal(t, Accumulated, s.state(1))
	s.wait(time.Hour)
	require.False(t, s.s.CanSubmit())
}

func timeoutFromFirstSend(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, "one"))
	s.submit()
	for range 8 { // every send is another chance
		s.wait(53 * time.Second)
		s.submit()
		require.Equal(t, Submitted, s.state(1))
	}
	require.Zero(t, s.s.Stats().Totals.Died)
}

func lateAccumulation(t *testing.T) {
	s := newToldScene(t, func(c *Config) { c.MaxVersionRetries, c.MaxSubmitRetries = 0, 0 })
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, "one"))
	pkg := s.submit()[0]
	s.ok(s.s.OnGuaranteed(s.now, pkg))
	for range 4 {
		s.wait(61 * time.Second)
	}
	require.Equal(t, uint64(1), s.s.Stats().Totals.Died)
	require.NotEmpty(t, s.s.queue.items, "given up, but not handed back")
	s.ok(s.s.OnAccumulated(s.now, pkg))
	require.Equal(t, Accumulated, s.state(1))
	s.wait(time.Hour)
	require.Equal(t, Accumulated, s.state(1))
	require.Zero(t, s.s.Stats().Totals.Entered(FailedState))
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
	require.Zero(t, s.q.held, "nothing stays locked")
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
	s.step(Enqueue[string]{Number: 1, Commitment: common.Hash{7}, Bundle: "on the state after 0"})
	for range 12 {
		for _, b := range s.builds {
			require.Equal(t, "on the state after 0", b.Bundle)
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
	back, err := Restore[string](s.q.cfg, text{}, AppendSnapshot[string](nil, text{}, s.q))
	require.NoError(t, err)
	require.Equal(t, s.q.Open(), back.Open())
	require.Len(t, back.Open(), 2)
	simple := NewSimple(back)
	require.True(t, simple.CanSubmit())
}

func lateGuarantee(t *testing.T) {
	s := newToldScene(t, nil)
	s.ok(s.s.Enqueue(s.now, 1, common.Hash{}, "one"))
	pkg := s.submit()[0]
	s.ok(s.s.OnAccumulated(s.now, pkg))
	s.ok(s.s.OnGuaranteed(s.now, pkg))
	require.Equal(t, Accumulated, s.state(1))
}

// The queue calls nobody: it could not deadlock if it tried.
func noCallbacks(t *testing.T) {
	q := reflect.TypeFor[Queue[string]]()
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
	require.Zero(t, s.q.due.Len()+s.q.waiting.Len()+s.q.timers.Len())
}

func foreignIsFree(t *testing.T) {
	s := newToldScene(t, func(c *Config) { c.MaxQueueDepth = 10_000 })
	for s.s.queue.CanEnqueue() {
		s.now = s.now.Add(time.Second)
		news, err := s.s.Enqueue(s.now, s.s.queue.Next(), common.Hash{}, "")
		require.NoError(t, err)
		_ = news
	}
	foreign := jamq.PackageHash{0xff}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if news, err := s.s.OnGuaranteed(s.now, foreign); news != nil || err != nil {
			t.Error("a foreign package is news")
		}
	}))
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
