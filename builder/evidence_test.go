package builder_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/journal"
	jamqsubmit "github.com/jamq/jamq/submit"
)

// TestLostLog: a builder whose log is gone does not begin again on a service that has accepted
// blocks. It goes on with the service's final state as its genesis.
func TestLostLog(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 1, "one")
			submit(ctx, t, b, 2, "two")
		})
		m.log = journal.Memory{}
		_, err := m.open(new(words.Rollup))
		require.ErrorIs(t, err, builder.ErrServiceInUse)
		require.ErrorContains(t, err, "FirstNumber 3")
		require.Zero(t, m.records(), "the log is unchanged")
		m.cfg.Queue.FirstNumber = 3
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 3, "three")
		})
	})
}

// records returns the number of records in the log.
func (m *machine) records() (n int) {
	require.NoError(m.t, m.log.Replay(func([]byte) error { n++; return nil }))
	return n
}

// blind is a network of a host that leaves out a part of each JAM block.
type blind struct {
	*simnet.Network
	hide func(*jamq.Block)
}

// Follow implements builder.Network.
func (n *blind) Follow(ctx context.Context, recovered jamqsubmit.Recovery, to jamqsubmit.ChainSink) error {
	return n.Network.Follow(ctx, recovered, &blindSink{to, n.hide})
}

type blindSink struct {
	jamqsubmit.ChainSink
	hide func(*jamq.Block)
}

// Import implements submit.ChainSink.
func (s *blindSink) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	s.hide(&block)
	return s.ChainSink.Import(ctx, block, best)
}

// TestDeadPackageIsAccumulated: a package that seemed dead, because a block lacked its report, is
// accumulated later on the same chain. The builder stops at once.
func TestDeadPackageIsAccumulated(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		dead := make(chan jamq.PackageHash, 100)
		hides := true
		network := &blind{m.network, func(b *jamq.Block) {
			select {
			case pkg := <-dead:
				hides = false
				b.AccumulatedKnown, b.Accumulated = true, append(b.Accumulated, pkg)
			default:
			}
			if hides {
				b.Reported, b.AccumulatedKnown, b.Accumulated = nil, false, nil
			}
		}}
		b, err := builder.Open(t.Context(), m.cfg, &m.log, builder.Rollup[words.Body](new(words.Rollup)), network)
		require.NoError(t, err)
		require.NoError(t, b.Submit(t.Context(), []byte("one")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go watch(ctx, b.Watch, func(e bundlequeue.Effect) {
			if d, ok := e.(bundlequeue.Died); ok {
				dead <- d.Package
			}
		})
		err = b.Run(ctx)
		require.ErrorIs(t, err, builder.ErrEvidence)
		require.ErrorContains(t, err, "AccumulatedKnown")
		require.LessOrEqual(t, len(dead), 1, "no other version was given up before")
	})
}

// TestAllPackagesAreLost: a builder whose packages are all lost from the beginning goes on, if its
// network can ask the service, which has accepted none. Nothing is lost when they arrive again.
func TestAllPackagesAreLost(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		rollup := new(words.Rollup)
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			loses(t, m, 1)
			require.NoError(t, b.Submit(ctx, []byte("one")))
			time.Sleep(1000 * jamq.Tiny().SlotDuration)
			require.Empty(t, b.Heads().Latest.Number)
			loses(t, m, 0)
			require.NoError(t, b.Await(ctx, final(1)))
		})
		require.Equal(t, []string{"one"}, rollup.State())
	})
}

// TestManyLostPackages: a builder that has seen its packages accumulated does not stop when later
// ones are lost, however many, because then the fields are there.
func TestManyLostPackages(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		rollup := new(words.Rollup)
		m.run(rollup, func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 1, "one")
			loses(t, m, 1)
			require.NoError(t, b.Submit(ctx, []byte("two")))
			time.Sleep(400 * jamq.Tiny().SlotDuration)
			loses(t, m, 0)
			require.NoError(t, b.Await(ctx, final(2)))
		})
		require.Equal(t, []string{"one", "two"}, rollup.State())
	})
}

// TestForkBelowFinality: a fork block whose slot is not later than the final one's is ignored, and
// so are its descendants, also after a restart: a host delivers all blocks that it imports.
func TestForkBelowFinality(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		var once atomic.Bool
		fork := func(ctx context.Context, b *builder.Builder[words.Body], child byte) {
			best, final := m.network.Driver().Heads()
			if !once.Swap(true) {
				old := jamq.Block{Hash: jamq.HeaderHash{'f', 1}, Parent: jamq.HeaderHash{'f'}, Slot: final.Slot}
				require.NoError(t, b.Import(ctx, old, best.Hash))
			}
			younger := jamq.Block{Hash: jamq.HeaderHash{'f', child}, Parent: jamq.HeaderHash{'f', child - 1}, Slot: final.Slot + jamq.Slot(child)}
			require.NoError(t, b.Import(ctx, younger, best.Hash))
		}
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 1, "one")
			fork(ctx, b, 2)
		})
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) {
			submit(ctx, t, b, 2, "two")
			fork(ctx, b, 3)
		})
	})
}

// TestOldFinality: finality that comes again for old blocks is ignored, also for blocks of which
// the builder keeps nothing else.
func TestOldFinality(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		blocks := make(chan jamq.HeaderHash, 1000)
		network := &blind{m.network, func(b *jamq.Block) { blocks <- b.Hash }}
		b, err := builder.Open(t.Context(), m.cfg, &m.log, builder.Rollup[words.Body](new(words.Rollup)), network)
		require.NoError(t, err)
		m.during(b, func(ctx context.Context) {
			time.Sleep(100 * jamq.Tiny().SlotDuration)
			for range 90 {
				require.NoError(t, b.Finalize(ctx, <-blocks))
			}
			require.Error(t, b.Finalize(ctx, jamq.HeaderHash{'?'}), "it was never imported")
		})
	})
}

// TestPackHangsOften: a call of Pack that hangs is made again, although many calls before it hang.
func TestPackHangsOften(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, released := newMachine(t), make(chan struct{})
		network := &hanging{Network: m.network, released: released}
		b, err := builder.Open(t.Context(), m.cfg, &m.log, builder.Rollup[words.Body](new(words.Rollup)), network)
		require.NoError(t, err)
		m.during(b, func(ctx context.Context) {
			submit(ctx, t, b, 1, "one")
			require.Equal(t, int32(hangs+1), network.calls.Load())
			close(released)
		})
	})
}

// hangs is more than the number of calls that may hang at short intervals.
const hangs = 10

// hanging is a network whose first calls of Pack hang.
type hanging struct {
	*simnet.Network
	calls    atomic.Int32
	released chan struct{}
}

// Pack implements builder.Network.
func (h *hanging) Pack(ctx context.Context, at builder.Anchor, payload []byte) (builder.Package, error) {
	if h.calls.Add(1) <= hangs {
		<-h.released
		return builder.Package{}, errors.New("too late")
	}
	return h.Network.Pack(ctx, at, payload)
}

// TestLogFailsAnywhere: Run returns ErrLog if any append fails, of the queue, a user or a
// checkpoint.
func TestLogFailsAnywhere(t *testing.T) {
	for n := range int64(60) {
		bubble.Run(t, func(t *testing.T) {
			m, log := newMachine(t), new(failsAt)
			log.left.Store(1 << 40)
			m.cfg.CheckpointEvery = 20
			b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](new(words.Saving)), m.network)
			require.NoError(t, err)
			log.left.Store(n + 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var users sync.WaitGroup
			for i := range 3 {
				users.Go(func() {
					for word := 0; b.Submit(ctx, fmt.Appendf(nil, "word %d of %d", word, i)) == nil; word++ {
						time.Sleep(time.Second)
					}
				})
			}
			require.ErrorIs(t, b.Run(ctx), builder.ErrLog)
			users.Wait()
		})
	}
}

// failsAt is a log of which one call and all later ones fail.
type failsAt struct {
	journal.Memory
	left atomic.Int64
}

func (f *failsAt) Append(records ...[]byte) error {
	if f.left.Add(-1) <= 0 {
		return errors.New("the disk is full")
	}
	return f.Memory.Append(records...)
}

func (f *failsAt) Replace(records ...[]byte) error {
	if f.left.Add(-1) <= 0 {
		return errors.New("the disk is full")
	}
	return f.Memory.Replace(records...)
}

// loses sets the share of packages that guarantors accept and lose.
func loses(t *testing.T, m *machine, share float64) {
	require.NoError(t, m.network.Driver().ChangeFaults(func(f *jamtest.Faults) { f.LossProbability = share }))
}

// TestContradictionDuringDoubt: a package that is accumulated after its death stops the builder at
// once, also while the service does not answer whether the packages before are lost.
func TestContradictionDuringDoubt(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		const enough = 40 // so that several blocks have failed
		dead := make(chan jamq.PackageHash, 10*enough)
		var shown time.Time
		network := &mute{blind: blind{m.network, func(b *jamq.Block) {
			b.Reported, b.AccumulatedKnown, b.Accumulated = nil, false, nil
			if len(dead) < enough {
				return
			}
			for len(dead) > 1 {
				<-dead
			}
			b.AccumulatedKnown, b.Accumulated = true, []jamq.PackageHash{<-dead} // the newest one
			if shown.IsZero() {
				shown = time.Now()
			}
		}}}
		b, err := builder.Open(t.Context(), m.cfg, &m.log, builder.Rollup[words.Body](new(words.Rollup)), network)
		require.NoError(t, err)
		network.silent.Store(true)
		require.NoError(t, b.Submit(t.Context(), []byte("one")))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		go watch(ctx, b.Watch, func(e bundlequeue.Effect) {
			if d, ok := e.(bundlequeue.Died); ok && !d.Unsent {
				dead <- d.Package
			}
		})
		err = b.Run(ctx)
		require.False(t, shown.IsZero())
		require.ErrorIs(t, err, builder.ErrEvidence)
		require.ErrorContains(t, err, "AccumulatedKnown")
		require.WithinDuration(t, shown, time.Now(), jamq.Tiny().SlotDuration)
	})
}

// mute is a blind network that does not answer what the service has received when it is silent.
type mute struct {
	blind
	silent atomic.Bool
}

// Received implements builder.Receiver.
func (n *mute) Received(ctx context.Context) (uint64, error) {
	if n.silent.Load() {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return n.Network.Received(ctx)
}

// TestOtherChainOnALog: a log does not open with the constants of another chain, also if the
// network cannot tell its own.
func TestOtherChainOnALog(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) { submit(ctx, t, b, 1, "one") })
		cfg, before := builder.DefaultConfig(jamq.Full()), m.records()
		_, err := builder.Open(t.Context(), cfg, &m.log, builder.Rollup[words.Body](new(words.Rollup)), bare{m.network})
		require.ErrorIs(t, err, builder.ErrInvalidConfig)
		require.Equal(t, before, m.records(), "the log is unchanged")
	})
}

// bare is a network without the optional methods.
type bare struct{ builder.Network }

// TestSecondLogOfAService: a log that has only the genesis does not begin on a service that another
// log has used meanwhile, as with a second directory that was made early.
func TestSecondLogOfAService(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		_, err := m.open(new(words.Rollup)) // it never runs
		require.NoError(t, err)
		second := m.copyLog()
		m.log = journal.Memory{}
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) { submit(ctx, t, b, 1, "one") })
		m.setLog(second)
		requireRefused(t, m, "one")
	})
}

// copyLog returns the records of the log.
func (m *machine) copyLog() (all [][]byte) {
	require.NoError(m.t, m.log.Replay(func(record []byte) error { all = append(all, slices.Clone(record)); return nil }))
	return all
}

// setLog replaces the records of the log.
func (m *machine) setLog(records [][]byte) { require.NoError(m.t, m.log.Replace(records...)) }

// requireRefused opens the log of a machine, and submits a word that the service has executed. The
// builder must stop with an error, and the service must not execute the word again.
func requireRefused(t *testing.T, m *machine, word string) {
	t.Helper()
	b, err := m.open(new(words.Rollup))
	if err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 200*jamq.Tiny().SlotDuration)
		defer cancel()
		_ = b.Submit(ctx, []byte(word))
		err = b.Run(ctx)
	}
	times := 0
	m.network.Driver().View(func(chain *jamtest.Chain) {
		inbox, err := chain.Inbox(7, chain.Best().Hash)
		require.NoError(t, err)
		for _, a := range inbox {
			for _, op := range words.Executed(a.Payload) {
				if string(op) == word {
					times++
				}
			}
		}
	})
	require.Equal(t, 1, times, "Open and Run returned: %v", err)
	require.ErrorIs(t, err, builder.ErrServiceInUse)
}

// TestOldBackup: a log that was restored from an old backup, as ErrServiceInUse advises, does not
// execute again what the service has accepted since.
func TestOldBackup(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) { submit(ctx, t, b, 1, "one") })
		backup := m.copyLog()
		m.run(new(words.Rollup), func(ctx context.Context, b *builder.Builder[words.Body]) { submit(ctx, t, b, 2, "two") })
		m.setLog(backup)
		requireRefused(t, m, "two")
	})
}

// TestPushedBlocksOfAnotherChain: a node that pushes blocks of another chain than that of the log
// ends Run, as one does whose blocks are pulled.
func TestPushedBlocksOfAnotherChain(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newMachine(t)
		network := pushing{m.network, make(chan struct{})}
		b, err := builder.Open(t.Context(), m.cfg, &m.log, builder.Rollup[words.Body](new(words.Rollup)), network)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 200*jamq.Tiny().SlotDuration)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		<-network.follows
		foreign := jamq.Block{Hash: jamq.HeaderHash{2}, Parent: jamq.HeaderHash{1}, Slot: slotOf(m) + 1}
		require.ErrorIs(t, b.Import(ctx, foreign, foreign.Hash), chainview.ErrMissingParent)
		require.ErrorIs(t, <-ended, chainview.ErrMissingParent)
	})
}

// slotOf returns the slot of the best block.
func slotOf(m *machine) jamq.Slot {
	best, _ := m.network.Driver().Heads()
	return best.Slot
}
