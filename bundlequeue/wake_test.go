package bundlequeue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// TestNextWakeIsEnough compares a queue that is ticked five times a second with
// a copy that is ticked only at the times of NextWake. Both do the same at
// about the same time.
func TestNextWakeIsEnough(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := newScene(t, func(c *Config) { c.MaxSubmitRetries = random.IntN(4) })
		for range 40 {
			s.anything(random)
			often := s.copied()
			seldom := s.copied()
			until := s.now.Add(2 * time.Minute)
			for often.now.Before(until) {
				often.now = often.now.Add(200 * time.Millisecond)
				often.step(Tick{})
			}
			for {
				wake, ok := seldom.q.NextWake(seldom.now)
				if !ok || wake.After(until) {
					break
				}
				require.True(t, wake.After(seldom.now))
				seldom.now = wake
				seldom.step(Tick{})
			}
			require.Equal(t, often.log, seldom.log, "seed %d", seed)
		}
	}
}

// copied returns a scene with a copy of the queue, as a restart makes it.
func (s *scene) copied() *scene {
	c := *s
	c.restart()
	c.log, c.builds, c.sends, c.records = nil, nil, nil, nil
	c.step(Tick{}) // the time has moved since the last event
	c.log = nil
	return &c
}

// anything plays one step of a builder's day.
func (s *scene) anything(random *rand.Rand) {
	s.t.Helper()
	s.now = s.now.Add(time.Duration(random.IntN(3)) * time.Second)
	switch n := random.IntN(10); {
	case n == 0 && s.q.CanEnqueue():
		s.step(Reserve{Number: s.q.Next()})
	case n <= 3 && s.q.CanEnqueue():
		s.enqueue(s.q.Next())
	case n == 4 && len(s.builds) > 0:
		b := s.builds[0]
		s.builds = s.builds[1:]
		_ = s.try(BuildFailed{Ticket: b.Ticket})
	case n == 5 && len(s.sends) > 0:
		e := s.sends[0]
		s.sends = s.sends[1:]
		_ = s.try(Sent{Ticket: e.Ticket, OK: random.IntN(2) == 0})
	case n <= 7:
		for _, b := range s.builds {
			s.hashes++
			_ = s.try(Built{
				Ticket: b.Ticket, Package: jamq.PackageHash{byte(b.Number), byte(b.Version), s.hashes}, Bundle: b.Bundle,
				Context: jamq.RefineContext{Anchor: b.Anchor.Hash, LookupAnchorSlot: s.slot, Prerequisites: b.Prerequisites},
			})
		}
		s.builds = nil
	case n == 8 && len(s.sends) > 0 && s.q.Holds(s.sends[0].Package):
		s.block(report(s.sends[0].Package, s.sends[0].Core))
	default:
		s.block(nil)
	}
}

// Every event survives its record: the decoded one is equal.
func TestRecordsOfAllEvents(t *testing.T) {
	block := jamq.Block{
		Hash: jamq.HeaderHash{1}, Parent: jamq.HeaderHash{2}, ParentStateRoot: [32]byte{3}, Slot: 4,
		Reported: []jamq.Report{{
			Hash: [32]byte{5}, Package: jamq.PackageHash{6}, SegmentRoot: [32]byte{7}, Core: 1, Anchor: jamq.HeaderHash{8},
			Prerequisites: []jamq.PackageHash{{9}},
		}},
		Available: []jamq.CoreIndex{1}, AccumulatedKnown: true, CoresCleared: true, Accumulated: []jamq.PackageHash{{11}},
	}
	block.Condemned = append(block.Condemned, [32]byte{10})
	context := jamq.RefineContext{
		Anchor: jamq.HeaderHash{1}, StateRoot: [32]byte{2}, BeefyRoot: [32]byte{3}, LookupAnchor: jamq.HeaderHash{4}, LookupAnchorSlot: 5,
		AnchorSlot: 6, LookupStateRoot: [32]byte{7}, Prerequisites: []jamq.PackageHash{{8}},
	}
	seen := make(map[string]bool)
	for _, want := range []Event{
		Reserve{Number: 1}, Enqueue{Number: 2, Commitment: [32]byte{3}, Bundle: []byte("bundle")}, Release{Number: 4}, Rekey{From: 5, To: 6},
		GiveUp{Number: 7, Reason: "a reason"}, Cores{Cores: []jamq.CoreIndex{1, 0}}, Adopt{Number: 8, Package: jamq.PackageHash{9}},
		Built{Ticket: 10, Package: jamq.PackageHash{11}, Context: context, Bundle: []byte("built")}, BuildFailed{Ticket: 12},
		Sent{Ticket: 13, OK: true}, Sent{Ticket: 14, Refused: true}, Sent{Ticket: 15}, Retry{Number: 16},
		Imported{Block: block, Best: jamq.HeaderHash{17}}, FinalizedBlock{Hash: jamq.HeaderHash{18}}, Tick{},
	} {
		now := jamq.CommonEra().Add(time.Hour)
		record, err := AppendRecord(nil, now, want)
		require.NoError(t, err)
		at, have, err := DecodeRecord(record)
		require.NoError(t, err)
		require.Equal(t, now, at)
		require.Equal(t, want, have)
		seen[fmt.Sprintf("%T", want)] = true
	}
	require.Len(t, seen, numKinds, "an event is missing")
}

// A bundle that lost its report and its core to a reorg wakes the queue for its next send.
func TestNextWakeAfterAReorg(t *testing.T) {
	s := newScene(t, func(c *Config) { c.SubmitRetryInterval = time.Minute })
	s.enqueue(1)
	pkg := s.run()[0]
	sent, fork := s.now, s.parent
	s.block(report(pkg, 0))
	s.blockOn(fork, s.slot+1, 'b', nil)
	require.Equal(t, Queued, s.state(1))
	require.Empty(t, s.sends)
	wake, ok := s.q.NextWake(s.now)
	require.True(t, ok)
	require.Equal(t, sent.Add(time.Minute), wake)

	// The next bundle passes it, and is to be built again before that.
	s.enqueue(2)
	require.Len(t, s.builds, 1)
	s.step(BuildFailed{Ticket: s.builds[0].Ticket})
	again, ok := s.q.NextWake(s.now)
	require.True(t, ok)
	require.Less(t, again.Sub(s.now), 2*s.q.cfg.BackoffBase)

	s.now = wake
	s.step(Tick{})
	require.Len(t, s.sends, 1)
	require.Equal(t, uint64(1), s.sends[0].Number)
}
