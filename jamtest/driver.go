package jamtest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jamq/jamq"
)

// Driver runs a chain on the wall clock: one slot per slot. Its methods are safe for concurrent use.
type Driver struct {
	clock   jamq.SlotClock
	running atomic.Bool

	mu    sync.Mutex
	chain *Chain
}

// NewDriver takes over a chain; nobody else may use it any more. A chain that should begin now has the StartSlot of
// jamq.NewSlotClock(spec).SlotAt(time.Now()); one that begins later waits for its time.
func NewDriver(chain *Chain) *Driver {
	return &Driver{clock: jamq.NewSlotClock(chain.cfg.Spec), chain: chain}
}

// Run advances the chain at each slot's beginning and hands every update to deliver, in order and under no lock, until ctx
// ends. It returns ctx's error, or at once [ErrRunning] if another Run goes on. None of the updates is lost: slots that pass
// while deliver is busy, or the machine asleep, become skipped slots of the chain. deliver may call the driver's methods.
func (d *Driver) Run(ctx context.Context, deliver func(Update)) error {
	if !d.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer d.running.Store(false)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if ctx.Err() != nil { // both were ready
			return ctx.Err()
		}
		now := time.Now()
		if u, moved := d.advanceTo(d.clock.SlotAt(now)); moved {
			deliver(u)
		}
		timer.Reset(time.Until(d.clock.Next(now)))
	}
}

func (d *Driver) advanceTo(slot jamq.Slot) (u Update, moved bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.chain.slot
	u = d.chain.AdvanceTo(slot)
	return u, u.Slot != before
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

// Faults is [Chain.Faults].
func (d *Driver) Faults() Faults {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chain.Faults()
}

// ChangeFaults changes what f changes, as [Chain.SetFaults] does. f runs under the driver's lock and must not call the driver.
func (d *Driver) ChangeFaults(f func(*Faults)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	faults := d.chain.Faults()
	f(&faults)
	return d.chain.SetFaults(faults)
}

// Inject is [Chain.Inject].
func (d *Driver) Inject(s *Script) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.chain.Inject(s)
}

// Kill is [Chain.Kill].
func (d *Driver) Kill(pkg jamq.PackageHash) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chain.Kill(pkg)
}

// View calls f with the chain, under the driver's lock: f must not keep the chain, change it or call the driver.
func (d *Driver) View(f func(*Chain)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d.chain)
}
