package jamtest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jamq/jamq"
)

// Driver runs a simulated chain in real time: one slot of the chain for each slot of
// the system clock. It is safe for concurrent use.
type Driver struct {
	clock   jamq.SlotClock
	running atomic.Bool

	mu    sync.Mutex
	chain *Chain
}

// NewDriver returns a driver that owns the chain, so the caller must not use the chain
// afterwards. Set the chain's StartSlot to jamq.NewSlotClock(spec).SlotAt(time.Now())
// for a start without delay. With a later StartSlot, the chain does not advance until
// the clock has passed that slot.
func NewDriver(chain *Chain) *Driver {
	return &Driver{clock: jamq.NewSlotClock(chain.cfg.Spec), chain: chain}
}

// Run advances the chain at the start of each slot, and passes every update to deliver,
// in order, until ctx ends. No lock is held during deliver, so deliver may call the
// driver's methods. No update is lost: slots that pass while deliver is busy, or while
// the machine sleeps, become skipped slots of the chain.
//
// Run returns the error of ctx. If another call of Run is active, it returns
// [ErrRunning] at once.
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

// Submit calls [Chain.Submit] under the driver's lock.
func (d *Driver) Submit(p Package, core jamq.CoreIndex, guarantor int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chain.Submit(p, core, guarantor)
}

// Anchors returns the results of [Chain.Anchors] and [Chain.LookupAnchor] at the
// same moment.
func (d *Driver) Anchors() (recent []jamq.AnchorBlock, lookup jamq.AnchorBlock) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chain.Anchors(), d.chain.LookupAnchor()
}

// Heads returns the best and the finalized block at the same moment.
func (d *Driver) Heads() (best, finalized jamq.Block) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chain.Best(), d.chain.Finalized()
}

// Faults calls [Chain.Faults] under the driver's lock.
func (d *Driver) Faults() Faults {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chain.Faults()
}

// ChangeFaults passes the current faults to f, which may change them, and sets the
// result with [Chain.SetFaults]. The driver's lock is held during f, so f must not call
// the driver.
func (d *Driver) ChangeFaults(f func(*Faults)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	faults := d.chain.Faults()
	f(&faults)
	return d.chain.SetFaults(faults)
}

// Inject calls [Chain.Inject] under the driver's lock.
func (d *Driver) Inject(s *Script) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.chain.Inject(s)
}

// Kill calls [Chain.Kill] under the driver's lock.
func (d *Driver) Kill(pkg jamq.PackageHash) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.chain.Kill(pkg)
}

// View calls f with the chain, so that tests can inspect it. f must not keep the chain,
// change it or call the driver, because the driver's lock is held.
func (d *Driver) View(f func(*Chain)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d.chain)
}
