package builder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/journal"
)

func neverPack(builder.Anchor) error { return errors.New("not now") }

// TestRecoveredHolds: a builder that is restarted makes and sends nothing before it knows the
// present chain. Health.Held is true meanwhile. Afterwards Follow gets what it has sent.
func TestRecoveredHolds(t *testing.T) {
	for name, release := range map[string]func(*scripted){
		"a new block": func(b *scripted) { b.next(jamq.NewSlotClock(jamq.Tiny()).SlotAt(time.Now())) },
		"Resume":      func(b *scripted) { require.NoError(b.t, b.Resume(b.t.Context())) },
		"HoldTimeout": func(*scripted) { time.Sleep(time.Minute) },
	} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, block before: %v", name, before), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { recoveredHolds(t, before, release) })
			})
		}
	}
}

// recoveredHolds opens a builder on the log of another one. A block is made before or after.
func recoveredHolds(t *testing.T, before bool, release func(*scripted)) {
	log := new(journal.Memory)
	first := (&script{pack: neverPack}).open(t, log, nil)
	if before {
		first.make(1)
	}
	require.ErrorIs(t, first.stop(), context.Canceled)

	time.Sleep(36 * time.Second)
	s := new(script)
	b := s.run(t, log, nil)
	require.Equal(t, first.best.Hash, s.recovered().Best.Hash)
	require.Empty(t, s.recovered().Out)
	require.True(t, b.Health().Held)
	old := jamq.Block{Hash: jamq.HeaderHash{8}, Parent: first.best.Hash, Slot: 2}
	require.NoError(t, b.Import(t.Context(), old, first.best.Hash))
	b.best = old
	if !before {
		b.make(1)
	}
	time.Sleep(20 * time.Second)
	_, sent := s.done()
	require.Empty(t, sent)
	release(b)
	time.Sleep(8 * time.Second) // less than is left of HoldTimeout
	_, sent = s.done()
	require.NotEmpty(t, sent)
	require.False(t, b.Health().Held)
	require.ErrorIs(t, b.stop(), context.Canceled)

	s.run(t, log, nil)
	out := s.recovered().Out
	require.Len(t, out, 1)
	require.Equal(t, s.sent[0].hash, out[0].Package)
}

// TestConfigurationMayChange: after a restart the configuration of the queue may be another one,
// also several times. The steps in the log are repeated under the one that they were made under.
// The chain must be the same.
func TestConfigurationMayChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(journal.Memory)
		b := (&script{pack: neverPack}).open(t, log, nil)
		for number := uint64(1); number <= 5; number++ {
			b.make(number)
		}
		time.Sleep(20 * time.Second)
		require.ErrorIs(t, b.stop(), context.Canceled)
		require.Positive(t, b.Health().BuildFailures)

		for _, depth := range []int{3, 7, 7} {
			b = (&script{pack: neverPack}).run(t, log, func(c *builder.Config) {
				c.Queue.MaxVersionRetries, c.Queue.BackoffMax = 1, time.Hour
				c.Queue.MaxQueueDepth, c.Queue.Cores = depth, []jamq.CoreIndex{1}
			})
			time.Sleep(time.Hour)
			require.EqualValues(t, 5, b.Heads().Pending.Number)
			stats, err := b.Stats(t.Context())
			require.NoError(t, err)
			require.Equal(t, depth, stats.Depth)
			require.Equal(t, 1, stats.Cores)
			require.Zero(t, stats.Totals.Entered(bundlequeue.FailedState), "builds that fail delay, and never fail a block")
			require.ErrorIs(t, b.stop(), context.Canceled)
		}
		cfg := builder.DefaultConfig(jamq.Tiny())
		cfg.Queue.Spec.EpochLength++
		_, err := builder.Open(t.Context(), cfg, log, builder.Rollup[words.Body](new(words.Saving)), builder.Network(new(script)))
		require.ErrorIs(t, err, bundlequeue.ErrInvalidConfig)
		require.NotErrorIs(t, err, builder.ErrCorrupt)
	})
}

// bounded is a log that refuses records of more than most bytes.
type bounded struct {
	journal.Memory
	most int
}

func (l *bounded) refuse(records [][]byte) error {
	if slices.ContainsFunc(records, func(r []byte) bool { return len(r) > l.most }) {
		return journal.ErrTooLarge
	}
	return nil
}

func (l *bounded) Append(records ...[]byte) error {
	return errors.Join(l.refuse(records), l.Memory.Append(records...))
}

func (l *bounded) Replace(records ...[]byte) error {
	if err := l.refuse(records); err != nil {
		return err
	}
	return l.Memory.Replace(records...)
}

// TestCheckpointInParts: a queue may hold more than fits into one record of a log.
func TestCheckpointInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &bounded{most: 2 << 20}
		large := make([]string, 10)
		for i := range large {
			large[i] = fmt.Sprint(i, strings.Repeat("x", 300_000))
		}
		// The checkpoint comes when the queue has most of the blocks.
		change := func(c *builder.Config) { c.CheckpointEvery, c.Queue.MaxQueueDepth = 180, 10 }
		b := (&script{pack: neverPack}).open(t, log, change)
		for i, word := range large {
			require.NoError(t, b.Submit(t.Context(), []byte(word)))
			b.await(uint64(i + 1))
		}
		time.Sleep(time.Minute)
		require.NoError(t, b.Health().Err)
		require.ErrorIs(t, b.stop(), context.Canceled)
		parts := 0
		require.NoError(t, log.Replay(func(r []byte) error {
			if r[0] == 'P' {
				parts++
			}
			return nil
		}))
		require.Greater(t, parts, 1)
		b = (&script{pack: neverPack}).run(t, log, change)
		require.EqualValues(t, 10, b.Heads().Pending.Number)
	})
}

// TestCorruptLog: Open refuses a log that no builder can have written.
func TestCorruptLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := new(journal.Memory)
		b := new(script).open(t, written, nil)
		b.make(1)
		require.ErrorIs(t, b.stop(), context.Canceled)
		var records [][]byte
		require.NoError(t, written.Replay(func(r []byte) error { records = append(records, bytes.Clone(r)); return nil }))
		begin, part := records[0], records[1]
		require.Equal(t, "CP", string([]byte{begin[0], part[0]}))
		cut := func(r []byte, at int) []byte { return slices.Delete(bytes.Clone(r), at, at+1) }
		for name, c := range map[string]struct {
			records [][]byte
			want    error
		}{
			"whole":                       {records, nil},
			"an empty record":             {append(slices.Clone(records), []byte{}), builder.ErrCorrupt},
			"an empty first record":       {[][]byte{{}}, builder.ErrCorrupt},
			"an unknown kind":             {append(slices.Clone(records), []byte{'?'}), builder.ErrCorrupt},
			"no checkpoint":               {records[1:], builder.ErrCorrupt},
			"no queue":                    {[][]byte{begin}, builder.ErrCorrupt},
			"a step instead of the queue": {[][]byte{begin, {'Q', 1, 2}}, builder.ErrCorrupt},
			"a damaged queue":             {[][]byte{begin, cut(part, 20)}, builder.ErrCorrupt},
			"a damaged checkpoint":        {[][]byte{cut(begin, 5), part}, builder.ErrCorrupt},
			"a damaged step":              {[][]byte{begin, part, {'Q', 1, 2, 3}}, builder.ErrCorrupt},
			"a damaged configuration":     {[][]byte{begin, part, {'K', '1'}}, builder.ErrCorrupt},
			"another state":               {[][]byte{begin, part, {'S', '1'}}, builder.ErrCorrupt},
		} {
			t.Log(name)
			log := new(journal.Memory)
			require.NoError(t, log.Append(c.records...))
			_, err := builder.Open(t.Context(), builder.DefaultConfig(jamq.Tiny()), log, builder.Rollup[words.Body](new(words.Saving)), builder.Network(new(script)))
			require.ErrorIs(t, err, c.want)
		}
	})
}

// TestRepeatedBlocksMoveNothingBack: a feed that repeats old blocks after a restart, each as the
// best one, never moves the best block back, also not to another fork. A new block moves it.
func TestRepeatedBlocksMoveNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(journal.Memory)
		block := func(hash, parent byte, slot jamq.Slot) jamq.Block {
			return jamq.Block{Hash: jamq.HeaderHash{hash}, Parent: jamq.HeaderHash{parent}, Slot: slot}
		}
		history := []jamq.Block{block('a', 'r', 1), block('b', 'a', 2), block('c', 'a', 3), block('d', 'c', 4), block('e', 'd', 5)}
		s := new(script)
		b := s.run(t, log, nil)
		for _, block := range history {
			b.deliver(block)
		}
		restart := func() (best jamq.HeaderHash) {
			require.ErrorIs(t, b.stop(), context.Canceled)
			b = s.run(t, log, nil)
			return s.recovered().Best.Hash
		}
		for repeated := range history {
			require.Equal(t, jamq.HeaderHash{'e'}, restart(), "%d blocks repeated", repeated)
			for _, block := range history[:repeated+1] {
				b.deliver(block)
			}
		}
		next := block('f', 'b', 4) // another fork, which is the best now
		b.deliver(next)
		require.Equal(t, next.Hash, restart())
	})
}

// TestStrangeChains: the constants of a chain may come from a node. Whatever it says, they are
// refused, or a builder can be made.
func TestStrangeChains(t *testing.T) {
	for _, change := range []func(*jamq.ChainSpec){
		func(s *jamq.ChainSpec) { s.RecentHistory = math.MaxInt },
		func(s *jamq.ChainSpec) { s.RecentHistory, s.Cores, s.Validators = 1<<16, 1<<16, 1<<16 },
		func(s *jamq.ChainSpec) { s.EpochLength, s.AvailabilityTimeout = jamq.MaxSlot, jamq.MaxSlot },
		func(s *jamq.ChainSpec) { s.EpochLength, s.SlotDuration = 1<<24, 24*time.Hour },
	} {
		spec := jamq.Tiny()
		change(&spec)
		_, err := builder.Open(t.Context(), builder.DefaultConfig(spec), new(journal.Memory), builder.Rollup[words.Body](new(words.Rollup)), builder.Network(new(script)))
		if err != nil && !errors.Is(err, jamq.ErrInvalidSpec) && !errors.Is(err, builder.ErrInvalidConfig) {
			t.Fatal(err)
		}
	}
}
