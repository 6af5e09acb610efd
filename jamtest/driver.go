package jamtest

import (
	"context"
	"sync"
	"time"

	"github.com/jamq/jamq"
)

// Driver runs a chain on the wall clock: one slot per slot. Its methods are safe for concurrent use.
type Driver struct {
	clock jamq.SlotClock
	mu    sync.Mutex
	chain *Chain
}

// NewDriver takes over a chain; nobody else may use it any more. A chain that should begin now has the StartSlot of
// jamq.NewSlotClock(spec).SlotAt(time.Now()).
func NewDriver(chain *Chain) *Driver {
	return &Driver{clock: jamq.NewSlotClock(chain.cfg.Spec), chain: chain}
}

// Run advances the chain at each slot's beginning and hands every update to deliver, in order and under no lock, until ctx
// ends. It returns ctx's error. Slots that pass while deliver is busy, or the machine asleep, are skipped slots.
func (d *Driver) Run(ctx context.Context, deliver func(Update)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		now := time.Now()
		d.mu.Lock()
		u := d.chain.AdvanceTo(d.clock.SlotAt(now))
		d.mu.Unlock()
		deliver(u)
		timer.Reset(time.Until(d.clock.Next(now)))
	}
}

// Submit is [Chain.Submit].
func (d *Driver) Submit(p Package, core jamq.CoreIndex, guarantor int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chain.Submit(p, core, guarantor)
}

// Anchors is [Chain.Anchors] and [Chain.LookupAnchor], of one moment.
func (d *Driver) Anchors() (recent []jamq.AnchorBlock, lookup jamq.AnchorBlock) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chain.Anchors(), d.chain.LookupAnchor()
}

// Heads returns the best and the finalized block.
func (d *Driver) Heads() (best, finalized jamq.Block) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chain.Best(), d.chain.Finalized()
}
