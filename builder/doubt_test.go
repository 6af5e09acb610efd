package builder_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/journal"
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
// JAM chain has H blocks more, also if another one leads meanwhile, and an operator can end the
// wait.
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
	wait    time.Duration // for H blocks after the best one of the loss, at least
	leader  *replica
}

func newQuarantined(t *testing.T, checkpointEvery int) *quarantined {
	m, shared := newMachine(t), new(journal.Shared)
	q := &quarantined{machine: m, t: t, shared: shared, network: &packing{Network: m.network}}
	spec := m.network.Spec()
	q.wait = time.Duration(spec.RecentHistory+3-1) * spec.SlotDuration // one block may come at once
	m.cfg.CheckpointEvery = checkpointEvery
	first := q.join()
	submit(t.Context(), t, first.Builder, 1, "one")
	require.NoError(t, first.Submit(t.Context(), []byte("two")))
	shared.Lose(0)
	<-first.ended
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
	require.NoError(q.t, q.leader.Await(q.t.Context(), final(2)))
	require.False(q.t, q.leader.Health().Doubted)
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
