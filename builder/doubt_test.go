package builder_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/service"
)

// packing is a network that notes when a package is made or sent.
type packing struct {
	*simnet.Network
	mu   sync.Mutex
	made int
}

func (p *packing) Pack(ctx context.Context, at builder.Anchor, payload []byte) (builder.Package, error) {
	p.note()
	return p.Network.Pack(ctx, at, payload)
}

func (p *packing) Send(ctx context.Context, pkg builder.Package, core jamq.CoreIndex, attempt int) error {
	p.note()
	return p.Network.Send(ctx, pkg, core, attempt)
}

func (p *packing) note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
}

// since returns the number of packages that were made and sent since the last call.
func (p *packing) since() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := p.made
	p.made = 0
	return made
}

// TestK6Quarantine: after a loss of records the next builder makes and sends no package until the
// final JAM chain has H + U + E blocks more, also if another one leads meanwhile, and an operator
// can end the wait.
func TestK6Quarantine(t *testing.T) {
	for name, check := range map[string]func(*quarantined){
		"it waits":                (*quarantined).waits,
		"another one leads":       (*quarantined).anotherLeads,
		"an operator ends it":     (*quarantined).isResumed,
		"the next start is quick": (*quarantined).endsOnce,
	} {
		for _, every := range []int{4, 1 << 20} { // with checkpoints, and without
			t.Run(fmt.Sprint(name, ", checkpoints every ", every), func(t *testing.T) {
				bubble.Run(t, func(t *testing.T) { check(newQuarantined(t, every)) })
			})
		}
	}
}

// quarantined is a builder that leads after a loss of records. Operations wait.
type quarantined struct {
	*machine
	t       *testing.T
	shared  *journal.Shared
	network *packing
	wait    time.Duration // for H + U + E blocks after the best one of the loss, at least
	leader  *replica
}

func newQuarantined(t *testing.T, checkpointEvery int) *quarantined {
	m, shared := newMachine(t), new(journal.Shared)
	q := &quarantined{machine: m, t: t, shared: shared, network: &packing{Network: m.network}}
	spec := m.network.Spec()
	blocks := spec.RecentHistory + int(spec.AvailabilityTimeout) + int(spec.EpochLength)
	m.cfg.CheckpointEvery = checkpointEvery
	first := q.join()
	submit(t.Context(), t, first.Builder, 1, "one")
	require.NoError(t, first.Submit(t.Context(), []byte("two")))
	shared.Lose(0)
	<-first.ended
	best, final := m.network.Driver().Heads() // each slot has a block
	blocks += int(best.Slot - final.Slot)
	q.wait = time.Duration(blocks+3-1) * spec.SlotDuration // one block may come at once
	q.network.since()
	q.leader = q.join()
	require.NoError(t, q.leader.Submit(t.Context(), []byte("three")))
	return q
}

func (q *quarantined) join() *replica {
	q.t.Helper()
	r := q.machine.joinWith(q.shared, new(words.Saving), q.network)
	synctest.Wait() // it leads, because no other one does
	return r
}

func (q *quarantined) waits() {
	require.True(q.t, q.leader.Health().Doubted)
	time.Sleep(q.wait - time.Second)
	require.Zero(q.t, q.network.since())
	require.True(q.t, q.leader.Health().Held)
	bubble.Await(q.t, time.Second, func() bool { return !q.leader.Health().Doubted }, "the doubt ends")
	require.NoError(q.t, q.leader.Await(q.t.Context(), final(2)))
	q.leader.stop(q.t)
}

func (q *quarantined) anotherLeads() {
	for range 3 {
		time.Sleep(q.wait / 2)
		q.leader.stop(q.t)
		q.leader = q.join()
	}
	require.Zero(q.t, q.network.since())
	q.waits()
}

func (q *quarantined) isResumed() {
	time.Sleep(q.wait / 2)
	require.Zero(q.t, q.network.since())
	require.NoError(q.t, q.leader.Resume(q.t.Context()))
	require.False(q.t, q.leader.Health().Doubted)
	time.Sleep(q.wait / 4)
	require.NotZero(q.t, q.network.since())
	q.leader.stop(q.t)
}

func (q *quarantined) endsOnce() {
	q.waits()
	q.leader = q.join()
	require.False(q.t, q.leader.Health().Doubted)
	submit(q.t.Context(), q.t, q.leader.Builder, 3, "four")
	q.leader.stop(q.t)
}

// losing is a network that makes the log lose its newest records when a package has left.
type losing struct {
	*simnet.Network
	lose    atomic.Pointer[func()]
	chained bool // only a package with a prerequisite counts
}

func (l *losing) Send(ctx context.Context, pkg builder.Package, core jamq.CoreIndex, attempt int) error {
	err := l.Network.Send(ctx, pkg, core, attempt)
	if l.chained && len(pkg.Context.Prerequisites) == 0 {
		return err
	}
	if lose := l.lose.Swap(nil); lose != nil {
		(*lose)()
	}
	return err
}

// TestK6LostPackageIsAdopted: the log loses the record of a package that JAM accumulates. The next
// builder recognizes it, and executes nothing twice, also if the service would let it.
func TestK6LostPackageIsAdopted(t *testing.T) {
	for name, genesis := range map[string]service.State{"a service with rules": installed(t), "a service without": nil} {
		for lost := 1; lost <= 2; lost++ { // the first is that of the package
			t.Run(fmt.Sprint(name, ", lost records: ", lost), func(t *testing.T) {
				bubble.Run(t, func(t *testing.T) {
					m, shared, next := afterLoss(t, genesis, lost)
					require.NoError(t, next.Submit(t.Context(), []byte("three")))
					require.NoError(t, next.Await(t.Context(), final(3)))
					require.Equal(t, []string{"one", "two", "three"}, executed(t, m))
					next.stop(t)
					again := m.join(shared)
					synctest.Wait() // it leads
					submit(t.Context(), t, again.Builder, 4, "four")
					again.stop(t)
				})
			})
		}
	}
}

// TestK6LostBlockStopsTheBuilder: the log loses a block too, and has another one under its number
// by now. The next builder ends with ErrServiceInUse, because its block can never become final.
func TestK6LostBlockStopsTheBuilder(t *testing.T) {
	for lost := 3; lost <= 6; lost++ { // the third is that of the block
		t.Run(fmt.Sprint("lost records: ", lost), func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				m, _, next := afterLoss(t, installed(t), lost)
				require.NoError(t, next.Submit(t.Context(), []byte("another")))
				select {
				case err := <-next.ended:
					require.ErrorIs(t, err, builder.ErrServiceInUse)
				case <-time.After(time.Hour):
					require.Fail(t, "it waits for ever")
				}
				require.Equal(t, []string{"one", "two"}, executed(t, m))
			})
		})
	}
}

// TestK6DoubtAsksTheService: the doubt does not end before the service has said which blocks it has
// accepted. Otherwise a builder whose log lacks a block would take operations forever.
func TestK6DoubtAsksTheService(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, shared, next := afterLoss(t, installed(t), 4) // the block is lost
		next.stop(t)
		service := &silent{Network: m.network}
		service.away.Store(true)
		next = m.joinWith(shared, new(words.Saving), service)
		synctest.Wait()
		time.Sleep(time.Hour)
		require.NotZero(t, service.asked.Load())
		require.True(t, next.Health().Doubted)
		service.away.Store(false)
		require.ErrorIs(t, <-next.ended, builder.ErrServiceInUse)
	})
}

// TestK6EmptyLog: a log that has lost all its records begins at the genesis again, and is doubted.
func TestK6EmptyLog(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, network := newMachine(t), new(packing)
		network.Network = m.network
		log := &emptied{new(journal.Shared).Join()}
		b, err := builder.Open(t.Context(), m.cfg, log, new(words.Saving), network)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		synctest.Wait()
		require.NoError(t, b.Submit(t.Context(), []byte("one")))
		spec := m.network.Spec()
		time.Sleep(time.Duration(spec.RecentHistory+int(spec.AvailabilityTimeout)+int(spec.EpochLength)) * spec.SlotDuration)
		require.True(t, b.Health().Doubted)
		require.Zero(t, network.since())
		require.NoError(t, b.Await(t.Context(), final(1)))
		stop()
		<-ended
	})
}

// emptied is a shared log that has lost all records.
type emptied struct{ *journal.Member }

func (*emptied) Promoted() bool { return true }

// silent is a network whose service answers no question about blocks while it is away.
type silent struct {
	*simnet.Network
	away  atomic.Bool
	asked atomic.Int64
}

func (s *silent) Received(ctx context.Context) (uint64, error) {
	s.asked.Add(1)
	if s.away.Load() {
		return 0, errors.New("the node does not answer")
	}
	return s.Network.Received(ctx)
}

// TestK6ReadyQueue: the package whose record is lost waits in the ready queue, because the blocks
// have no gas left for it. The doubt lasts as long.
func TestK6ReadyQueue(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m := newFaultyMachine(t, func(c *jamtest.Config) { c.Spec.EpochLength = 60 })
		shared, network := new(journal.Shared), &losing{Network: m.network, chained: true}
		first := m.joinWith(shared, new(words.Saving), network)
		synctest.Wait()
		submit(t.Context(), t, first.Builder, 1, "one")
		network.lose.Store(ref(func() { shared.Lose(1) }))
		want := []string{"one", "two"}
		require.NoError(t, first.Submit(t.Context(), []byte("two")))
		for i := 0; !isEnded(first); i++ {
			time.Sleep(m.network.Spec().SlotDuration)
			if word := fmt.Sprint("more ", i); first.Submit(t.Context(), []byte(word)) == nil {
				want = append(want, word)
			}
		}
		require.ErrorIs(t, <-first.ended, builder.ErrLog)
		congest := func(on bool) {
			require.NoError(t, m.network.Driver().ChangeFaults(func(f *jamtest.Faults) { f.Congested = on }))
		}
		congest(true)
		next := m.joinWith(shared, new(words.Saving), m.network)
		synctest.Wait()
		require.True(t, next.Health().Doubted)
		time.Sleep(40 * m.network.Spec().SlotDuration)
		require.NotContains(t, executed(t, m), want[2])
		require.True(t, next.Health().Doubted)
		congest(false)
		submit(t.Context(), t, next.Builder, uint64(len(want)+1), "last")
		require.Equal(t, append(want, "last"), executed(t, m))
		next.stop(t)
	})
}

// TestK6ClockIsLate: by a clock that is late, old blocks look recent. The wait
// nevertheless begins when the builder has caught up with the chain.
func TestK6ClockIsLate(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		const late = 8 // slots
		m, shared := newMachine(t), new(journal.Shared)
		spec := m.network.Spec()
		first := m.join(shared)
		synctest.Wait()
		submit(t.Context(), t, first.Builder, 1, "one")
		shared.Lose(0)
		<-first.ended
		time.Sleep(2 * late * spec.SlotDuration) // blocks that no builder has seen
		best, _ := m.network.Driver().Heads()
		m.cfg.Window.Clock.Era = m.cfg.Window.Clock.Era.Add(late * spec.SlotDuration)
		next := m.join(shared)
		synctest.Wait()
		bubble.Await(t, time.Second, func() bool { return !next.Health().Doubted }, "the doubt ends")
		_, final := m.network.Driver().Heads()
		require.GreaterOrEqual(t, int(final.Slot-best.Slot), spec.RecentHistory+int(spec.AvailabilityTimeout)+int(spec.EpochLength))
		next.stop(t)
	})
}

// TestK6ClockIsEarly: by a clock that is early, no block looks recent. The doubt lasts, and the log
// has an error for the operator.
func TestK6ClockIsEarly(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, shared := newMachine(t), new(journal.Shared)
		m.cfg.Window.Clock.Era = m.cfg.Window.Clock.Era.Add(-5 * m.network.Spec().SlotDuration)
		first := m.join(shared)
		synctest.Wait()
		submit(t.Context(), t, first.Builder, 1, "one")
		shared.Lose(0)
		<-first.ended
		var told bytes.Buffer
		m.cfg.Logger = slog.New(slog.NewTextHandler(&told, nil))
		next := m.join(shared)
		synctest.Wait()
		time.Sleep(time.Hour)
		require.True(t, next.Health().Doubted)
		next.stop(t)
		require.Contains(t, told.String(), "check the clock of this machine")
		next = m.join(shared)
		synctest.Wait()
		require.NoError(t, next.Resume(t.Context()))
		submit(t.Context(), t, next.Builder, 2, "two")
		next.stop(t)
	})
}

// afterLoss returns a builder that leads on a log which lost its newest records at the moment when
// the package of the second block had left.
func afterLoss(t *testing.T, genesis service.State, lost int) (*machine, *journal.Shared, *replica) {
	m := newFaultyMachine(t, func(c *jamtest.Config) { c.Genesis = genesis })
	shared, network := new(journal.Shared), &losing{Network: m.network}
	first := m.joinWith(shared, new(words.Saving), network)
	synctest.Wait()
	submit(t.Context(), t, first.Builder, 1, "one")
	network.lose.Store(ref(func() { shared.Lose(lost) }))
	require.NoError(t, first.Submit(t.Context(), []byte("two")))
	require.ErrorIs(t, <-first.ended, builder.ErrLog)
	next := m.joinWith(shared, new(words.Saving), network)
	synctest.Wait()
	require.True(t, next.Health().Doubted)
	return m, shared, next
}

// installed returns the genesis state of a chain with the rollup's service. The packages of simnet
// have no authorizer.
func installed(t *testing.T) service.State {
	state, err := service.Genesis{Service: 7, Block: proof.Commitment{PostRoot: new(words.Rollup).Root()}}.Entries()
	require.NoError(t, err)
	return state
}

func ref[T any](v T) *T { return &v }

// executed returns the words that JAM has executed, in order.
func executed(t *testing.T, m *machine) (all []string) {
	m.network.Driver().View(func(chain *jamtest.Chain) {
		inbox, err := chain.Inbox(7, chain.Best().Hash)
		require.NoError(t, err)
		for _, a := range inbox {
			for _, word := range words.Executed(a.Payload) {
				all = append(all, string(word))
			}
		}
	})
	return all
}
