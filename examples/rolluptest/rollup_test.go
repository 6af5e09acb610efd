package rolluptest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/jamtest"
)

const service jamq.ServiceID = 7

// world is the rollup, its queue, and a simulated JAM chain: a few days of it take a second, and a
// seed names each of them.
type world struct {
	t      *testing.T
	rollup *Rollup
	chain  *jamtest.Chain
	queue  *bundlequeue.Queue[Block]
	oracle *jamtest.Oracle // trusts nothing but the chain
	sent   map[jamq.PackageHash]jamtest.Package
	failed int
}

func newWorld(t *testing.T, network jamtest.Config, change func(*bundlequeue.Config)) *world {
	chain, err := jamtest.New(network)
	require.NoError(t, err)
	cfg := bundlequeue.DefaultConfig(network.Spec)
	if change != nil {
		change(&cfg)
	}
	queue, err := bundlequeue.New[Block](cfg, chain.Best())
	require.NoError(t, err)
	// The function does what the rollup's service would do with a package. The oracle finds
	// transactions that ran twice, were lost, or ran out of order.
	oracle := jamtest.NewOracle(service, func(payload []byte) jamtest.Execution {
		var b Block
		require.NoError(t, json.Unmarshal(payload, &b))
		e := jamtest.Execution{Number: b.Number, PreRoot: b.PreRoot, PostRoot: b.PostRoot}
		for _, transfer := range b.Transfers {
			e.Txs = append(e.Txs, transfer.ID)
		}
		return e
	})
	rollup := NewRollup(Ledger{"alice": 1000, "bob": 1000})
	return &world{t: t, rollup: rollup, chain: chain, queue: queue, oracle: oracle, sent: map[jamq.PackageHash]jamtest.Package{}}
}

// happened tells the queue, and does what it says.
func (w *world) happened(event bundlequeue.Event) {
	effects, err := w.queue.Step(jamq.NewSlotClock(w.chain.Config().Spec).Start(w.chain.Slot()), event)
	require.NoError(w.t, err)
	for _, effect := range effects {
		switch e := effect.(type) {
		case bundlequeue.Build[Block]:
			refine, err := anchor.Pick(w.chain.Anchors(), e.Anchor.Hash, w.chain.LookupAnchor(), e.Prerequisites)
			require.NoError(w.t, err)
			payload, err := json.Marshal(e.Bundle)
			require.NoError(w.t, err)
			p := jamtest.NewPackage(service, refine, payload)
			w.sent[p.Hash] = p
			w.happened(bundlequeue.Built[Block]{Ticket: e.Ticket, Package: p.Hash, Context: refine, Bundle: e.Bundle})
		case bundlequeue.Send[Block]:
			err := w.chain.Submit(w.sent[e.Package], e.Core, e.Attempt)
			w.happened(bundlequeue.Sent{Ticket: e.Ticket, OK: err == nil})
		case bundlequeue.Failed[Block]:
			w.failed++
			w.rollup.TakeBack(e.Bundle)
			w.happened(bundlequeue.TakenBack{Ticket: e.Ticket})
		}
	}
}

// slot plays one slot: it imports the blocks of the chain, and then seals a block if
// there is room and work.
func (w *world) slot() {
	update := w.chain.Advance()
	for _, block := range update.Imported {
		w.happened(bundlequeue.Imported{Block: block, Best: update.Best})
	}
	w.happened(bundlequeue.FinalizedBlock{Hash: update.Finalized})
	w.happened(bundlequeue.Tick{})
	w.oracle.Observe(update)
	if w.queue.CanEnqueue() {
		if b, ok := w.rollup.Seal(3); ok {
			w.happened(bundlequeue.Enqueue[Block]{Number: b.Number, Bundle: b})
		}
	}
}

// settle submits transfers between alice and bob, one a slot, and goes on until all of them are
// final.
func (w *world) settle(transfers int) {
	for i := 0; i < transfers || w.queue.Pending() > 0 || len(w.rollup.waiting) > 0; i++ {
		require.Less(w.t, i, 5000, "it does not end: %s", w.chain)
		if i < transfers {
			t := Transfer{ID: fmt.Sprint(i), From: "alice", To: "bob", Amount: 3}
			if i%2 == 1 {
				t.From, t.To = t.To, t.From
			}
			w.rollup.Submit(t)
			w.oracle.Expect(t.ID)
		}
		w.slot()
	}
	verdict := w.oracle.Check()
	require.True(w.t, verdict.OK(), "%s", &verdict)
	require.Equal(w.t, Ledger{"alice": 1000, "bob": 1000}, w.rollup.State())
}

// First the logic by itself: no chain is needed for that.
func TestTransfers(t *testing.T) {
	l := Ledger{"alice": 5}
	require.NoError(t, l.Apply(Transfer{From: "alice", To: "bob", Amount: 5}))
	require.ErrorIs(t, l.Apply(Transfer{From: "alice", To: "bob", Amount: 1}), ErrOverdrawn)
	require.Equal(t, Ledger{"alice": 0, "bob": 5}, l)
}

// Then under all faults at once, by chance. A run that fails is run again by its seed.
func TestEveryTransferOnce(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			network := jamtest.DefaultConfig(jamq.Tiny(), seed)
			network.LossProbability, network.SkipProbability, network.DelayProbability = 0.3, 0.2, 0.2
			network.UnavailableProbability, network.ForkProbability, network.MaxForkDepth = 0.1, 0.1, 2
			newWorld(t, network, nil).settle(60)
		})
	}
}

// Then one fault at a known time: the block that reported our first packages is reorganized away.
func TestReorganization(t *testing.T) {
	script, err := jamtest.ParseScript("at 6 fork 2\nat 8 reorg")
	require.NoError(t, err)
	network := jamtest.DefaultConfig(jamq.Tiny(), 1)
	network.MaxForkDepth, network.FinalityLag, network.Script = 3, 4, script
	newWorld(t, network, nil).settle(30)
}

// And a block that fails for good, because a burst of losses takes every version of it. Its
// transfers are executed again, in other blocks, once.
func TestFailedBlockComesBack(t *testing.T) {
	script, err := jamtest.ParseScript("at 1 lose 40")
	require.NoError(t, err)
	network := jamtest.DefaultConfig(jamq.Tiny(), 1)
	network.Script = script
	w := newWorld(t, network, func(c *bundlequeue.Config) { c.MaxVersionRetries, c.MaxSubmitRetries = 1, 1 })
	w.settle(30)
	require.Positive(t, w.failed)
}
