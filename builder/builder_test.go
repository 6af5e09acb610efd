package builder_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/journal"
)

// machine is a simulated JAM chain and a log, which outlive builders.
type machine struct {
	t       *testing.T
	network *simnet.Network
	log     journal.Memory
	cfg     builder.Config
}

// newMachine starts a chain in a bubble. It ends with the test.
func newMachine(t *testing.T) *machine { return newFaultyMachine(t, nil) }

// newFaultyMachine is newMachine with faults of the chain.
func newFaultyMachine(t *testing.T, faults func(*jamtest.Config)) *machine {
	network, err := simnet.Tiny(jamq.Tiny().SlotDuration, 7, faults)
	require.NoError(t, err)
	m := &machine{t: t, network: network, cfg: builder.DefaultConfig(network.Spec())}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = m.network.Run(ctx, nil)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return m
}

func (m *machine) open(rollup builder.Rollup[words.Body]) (*builder.Builder[words.Body], error) {
	return builder.Open(m.t.Context(), m.cfg, &m.log, rollup, m.network)
}

// run runs a builder until the function returns.
func (m *machine) run(rollup builder.Rollup[words.Body], f func(context.Context, *builder.Builder[words.Body])) {
	m.t.Helper()
	b, err := m.open(rollup)
	require.NoError(m.t, err)
	m.during(b, func(ctx context.Context) { f(ctx, b) })
}

// during runs a builder until the function returns. After two days the context of the function
// ends, so that a state that does not come fails the test.
func (m *machine) during(b *builder.Builder[words.Body], f func(context.Context)) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(m.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	var err error
	func() {
		defer func() { cancel(); err = <-ended }() // also when f ends the test
		patient, done := context.WithTimeout(ctx, 48*time.Hour)
		defer done()
		f(patient)
	}()
	require.ErrorIs(m.t, err, context.Canceled)
}

func final(number uint64) func(canonical.Heads) bool {
	return func(h canonical.Heads) bool { return h.Finalized.Number >= number }
}

// submit submits words, and waits until a block is final.
func submit(ctx context.Context, t *testing.T, b *builder.Builder[words.Body], number uint64, some ...string) {
	t.Helper()
	for _, word := range some {
		require.NoError(t, b.Submit(ctx, []byte(word)))
	}
	require.NoError(t, b.Await(ctx, final(number)))
}

// TestBuilder: operations become final, and a second builder on the same log continues.
func TestBuilder(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, rollup := newMachine(t), new(words.Rollup)
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 1, "one")
			require.Error(t, b.Submit(ctx, nil), "an empty word")
			heads := b.Heads()
			require.Equal(t, rollup.Root(), heads.Finalized.Root)
			require.Equal(t, heads.Pending, heads.Finalized)
		})
		again := new(words.Rollup)
		m.run(again, func(ctx context.Context, b *builder.Builder[words.Body]) {
			require.Equal(t, []string{"one"}, again.State())
			require.EqualValues(t, 1, b.Heads().Finalized.Number)
			submit(ctx, t, b, 2, "two")
			require.Equal(t, []string{"one", "two"}, again.State())
		})
	})
}

// TestBlockHash: a rollup finds the block of a head by its hash, also after a restart.
func TestBlockHash(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		first := &indexing{numbers: make(map[common.Hash]uint64)}
		m.run(first, func(ctx context.Context, b *builder.Builder[words.Body]) {
			require.NoError(t, b.Submit(ctx, []byte("one")))
			require.NoError(t, b.Await(ctx, func(h canonical.Heads) bool { return h.Pending.Number == 1 }))
			block, found := b.Block(1)
			require.True(t, found)
			require.Equal(t, b.Heads().Pending.Hash, block.Hash())
			submit(ctx, t, b, 2, "two")
			heads := b.Heads()
			require.Equal(t, heads.Finalized.Number, first.numbers[heads.Finalized.Hash])
		})
		again := &indexing{numbers: make(map[common.Hash]uint64)}
		_, err := m.open(again)
		require.NoError(t, err)
		require.Equal(t, first.numbers, again.numbers)
	})
}

// indexing is a rollup that finds its blocks by their hash.
type indexing struct {
	words.Rollup
	numbers map[common.Hash]uint64
}

// Apply implements builder.Rollup.
func (r *indexing) Apply(ctx context.Context, b builder.Block[words.Body]) error {
	r.numbers[b.Hash()] = b.Number
	return r.Rollup.Apply(ctx, b)
}

// TestK2Checkpoint: the log stays short, a builder continues from it, and blocks become final in
// order.
func TestK2Checkpoint(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.cfg.CheckpointEvery = 50
		var want []string
		for life := range uint64(5) {
			rollup := new(words.Saving)
			m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
				require.Equal(t, want, rollup.State())
				for i := range uint64(5) {
					word := fmt.Sprint(life, i)
					submit(ctx, t, b, 5*life+i+1, word)
					want = append(want, word)
				}
				require.True(t, slices.IsSorted(rollup.Finals()), "%v", rollup.Finals())
			})
		}
		records := 0
		require.NoError(t, m.log.Replay(func([]byte) error { records++; return nil }))
		require.Less(t, records, 200, "of more than a thousand")
	})
}

// large is a rollup whose checkpoints have many records.
type large struct {
	words.Saving
	made int
}

const largeRecords = 200

// Checkpoint implements builder.Checkpointer.
func (l *large) Checkpoint(ctx context.Context) ([][]byte, error) {
	l.made++
	records, err := l.Saving.Checkpoint(ctx)
	return append(records, slices.Repeat([][]byte{{1}}, largeRecords)...), err
}

// counting is a log that counts the records that are appended.
type counting struct {
	builder.Log
	appended int
}

// Append implements builder.Log.
func (c *counting) Append(records ...[]byte) error {
	c.appended += len(records)
	return c.Log.Append(records...)
}

// TestLargeCheckpoints: a large state is not written again and again. A checkpoint is made when the
// log has grown by as many records as the last one has, also after a restart.
func TestLargeCheckpoints(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.cfg.CheckpointEvery = 4
		log := &counting{Log: &m.log}
		made := 0
		for life := range uint64(6) {
			rollup := new(large)
			b, err := builder.Open(t.Context(), m.cfg, log, rollup, m.network)
			require.NoError(t, err)
			m.during(b, func(ctx context.Context) {
				for i := range uint64(15) {
					submit(ctx, t, b, 15*life+i+1, fmt.Sprint(life, i))
				}
			})
			made += rollup.made
		}
		require.Greater(t, log.appended, 4*largeRecords)
		require.Greater(t, made, 2)
		require.LessOrEqual(t, made, 1+log.appended/largeRecords)
	})
}

// TestNoCheckpoint: a rollup that cannot make a checkpoint for a while costs a longer log, and
// nothing else.
func TestNoCheckpoint(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		var tries, succeeds atomic.Int64
		m.cfg.CheckpointEvery = 20
		rollup := &words.Saving{BeforeCheckpoint: func() error {
			if tries.Add(1); succeeds.Load() == 0 {
				return errors.New("the disk is busy")
			}
			return nil
		}}
		records := func() (n int) {
			require.NoError(t, m.log.Replay(func([]byte) error { n++; return nil }))
			return n
		}
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			for i := range uint64(10) {
				submit(ctx, t, b, i+1, fmt.Sprint(i))
			}
			require.Greater(t, tries.Load(), int64(2))
			require.Less(t, tries.Load(), int64(60), "not at each record")
			long := records()
			require.Greater(t, long, 100)
			succeeds.Store(1)
			for i := uint64(10); i < 20; i++ {
				submit(ctx, t, b, i+1, fmt.Sprint(i))
			}
			require.Less(t, records(), long)
		})
	})
}

// TestOtherLog: a log of another rollup, of another version, or with another content is refused.
func TestOtherLog(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) { submit(ctx, t, b, 1, "one") })
		_, err := m.open(&words.Rollup{Hash: func([]string) common.Hash { return common.Hash{9} }})
		require.ErrorIs(t, err, builder.ErrOtherRollup)
		// Its genesis is the same, and its blocks have another result.
		_, err = m.open(&words.Rollup{Hash: func(state []string) common.Hash {
			if len(state) == 0 {
				return new(words.Rollup).Root()
			}
			return common.Hash{9}
		}})
		require.ErrorIs(t, err, builder.ErrDiverged)

		require.NoError(t, m.log.Replace([]byte{'C', 1}))
		_, err = m.open(new(words.Rollup))
		require.ErrorIs(t, err, builder.ErrVersion)
		require.NoError(t, m.log.Replace([]byte("nonsense")))
		_, err = m.open(new(words.Rollup))
		require.ErrorIs(t, err, builder.ErrCorrupt)
	})
}

// TestCheckpointWithoutState: if a checkpoint does not lead to the state that it was made of, the
// error names the checkpoint and not another rollup.
func TestCheckpointWithoutState(t *testing.T) {
	for text, records := range map[string][][]byte{
		"the last checkpoint has no records":             nil,
		"does not lead to the state that Checkpoint had": {[]byte("half of it")},
	} {
		t.Run(text, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				m := newMachine(t)
				m.cfg.CheckpointEvery = 10
				m.run(&forgetful{records: records}, func(ctx context.Context, b *builder.Builder[words.Body]) {
					submit(ctx, t, b, 1, "one")
					submit(ctx, t, b, 2, "two")
				})
				_, err := m.open(new(forgetful))
				require.ErrorIs(t, err, builder.ErrDiverged)
				require.NotErrorIs(t, err, builder.ErrOtherRollup)
				require.ErrorContains(t, err, text)
			})
		})
	}
}

// forgetful is a builder.Checkpointer that does not keep its state.
type forgetful struct {
	words.Rollup
	records [][]byte
}

// Checkpoint implements builder.Checkpointer.
func (f *forgetful) Checkpoint(context.Context) ([][]byte, error) { return f.records, nil }

// Restore implements builder.Checkpointer.
func (*forgetful) Restore(context.Context, [][]byte) error { return nil }

// TestK8HostCallsCostThemselves: while Propose hangs, blocks become final; while Payload hangs for
// a block, the next ones are proposed. A call that ends lets everything go on.
func TestK8HostCallsCostThemselves(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		hang, hung := make(chan struct{}), make(chan struct{}, 1)
		proposals := 0
		rollup := &words.Rollup{BeforePropose: func(context.Context) error {
			if proposals++; proposals == 4 {
				hung <- struct{}{}
				<-hang
			}
			return nil
		}}
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 0, "one")
			<-hung
			require.NoError(t, b.Submit(ctx, []byte("two")), "while a proposal hangs")
			require.NoError(t, b.Await(ctx, final(1)), "while a proposal hangs")
			close(hang)
			require.NoError(t, b.Await(ctx, final(2)))
		})

		m = newMachine(t)
		hang = make(chan struct{})
		var payloads atomic.Int64
		rollup = &words.Rollup{BeforePayload: func(context.Context) error {
			if payloads.Add(1) == 1 {
				<-hang // and ignores its context
			}
			return nil
		}}
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 0, "one")
			pending := func(number uint64) func(canonical.Heads) bool {
				return func(h canonical.Heads) bool { return h.Pending.Number >= number }
			}
			require.NoError(t, b.Await(ctx, pending(1)))
			submit(ctx, t, b, 0, "two")
			require.NoError(t, b.Await(ctx, pending(2)), "while a payload hangs")
			require.NoError(t, b.Await(ctx, final(2)), "the payload is asked for again")
			synctest.Wait() // the calls that follow the block have returned
			health := b.Health()
			require.Len(t, health.Calls, 1)
			require.Equal(t, "Rollup.Payload", health.Calls[0].Method)
			close(hang)
		})
	})
}

// TestConfig: a configuration that cannot be used is refused.
func TestConfig(t *testing.T) {
	good := builder.DefaultConfig(jamq.Tiny())
	require.NoError(t, good.Validate())
	for name, change := range map[string]func(*builder.Config){
		"CheckpointEvery": func(c *builder.Config) { c.CheckpointEvery = 0 },
		"Retry":           func(c *builder.Config) { c.Retry = 0 },
		"HoldTimeout":     func(c *builder.Config) { c.HoldTimeout = 0 },
		"BuildTimeout":    func(c *builder.Config) { c.BuildTimeout = 0 },
		"SendTimeout":     func(c *builder.Config) { c.SendTimeout = 0 },
		"DelayAlarm":      func(c *builder.Config) { c.DelayAlarm = 0 },
		"Window":          func(c *builder.Config) { c.Window.Opens = 0 },
		"Queue":           func(c *builder.Config) { c.Queue.FirstNumber = 0 },
	} {
		cfg := good
		change(&cfg)
		require.ErrorIs(t, cfg.Validate(), builder.ErrInvalidConfig)
		require.ErrorContains(t, cfg.Validate(), name)
	}
	_, err := builder.Open(t.Context(), good, nil, builder.Rollup[words.Body](new(words.Rollup)), nil)
	require.ErrorIs(t, err, builder.ErrInvalidConfig)
}

// TestDrain: Drain waits for operations that wait and for blocks that are not final, also if the
// last operation is dropped without a block.
func TestDrain(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, rollup := newMachine(t), new(words.Rollup)
		var waits atomic.Bool
		waiting := func() bool { return waits.Load() || len(rollup.State()) < 2 }
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			drained := make(chan error, 1)
			go func() { drained <- b.Drain(ctx, waiting) }()
			require.NoError(t, b.Submit(ctx, []byte("one")))
			require.NoError(t, b.Await(ctx, final(1)))
			waits.Store(true)
			require.NoError(t, b.Submit(ctx, []byte("two")))
			require.NoError(t, b.Await(ctx, final(2)))
			synctest.Wait()
			require.Empty(t, drained)
			waits.Store(false) // it was dropped
			require.NoError(t, <-drained)
			require.EqualValues(t, 2, b.Heads().Finalized.Number)
			require.NoError(t, b.Submit(ctx, []byte("three")))
			require.NoError(t, b.Await(ctx, func(h canonical.Heads) bool { return h.Pending.Number == 3 }))
			require.NoError(t, b.Drain(ctx, waiting))
			require.EqualValues(t, 3, b.Heads().Finalized.Number)
			ended, end := context.WithCancel(ctx)
			end()
			require.ErrorIs(t, b.Drain(ended, func() bool { return true }), context.Canceled)
		})
	})
}
