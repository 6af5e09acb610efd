package txpool

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

// changeCore calls f under the lock and restores the caps. The caller delivers the events later,
// so that an observer may call any method.
func (p *Pool) changeCore(f func(*core)) {
	p.lockCore()
	defer p.mu.Unlock()
	f(p.core)
	p.core.restoreCaps()
}

// lockCore takes the lock for a call that changes the core.
func (p *Pool) lockCore() {
	now := p.clock()
	p.mu.Lock()
	p.core.now = max(p.core.now, now) // another call may have waited less
}

// takeTurn takes p.turn. The caller must call end when it is done.
func (p *Pool) takeTurn() (end func()) {
	p.turn.Lock()
	return func() {
		p.turn.Unlock()
		p.deliverEvents()
	}
}

// clock returns the time by which the pool measures ages, in Unix nanoseconds.
// If Config.Now returns times with a monotonic reading, as time.Now does, it
// follows that reading from the pool's beginning. Setting the machine's clock
// then makes nothing older or younger.
func (p *Pool) clock() int64 { return p.begun.UnixNano() + int64(p.cfg.Now().Sub(p.begun)) }

// readAccount reads an account from the host's state.
func (p *Pool) readAccount(address common.Address) (Account, error) {
	account, err := p.state.Account(address)
	if err != nil {
		return Account{}, fmt.Errorf("%w: %v: %w", ErrState, address, err)
	}
	return account, nil
}

// reading is the answer of State for an account.
type reading struct {
	in      *account // of the sender when the reading began
	account Account
	err     error
}

// readers is the maximum number of accounts that the pool reads at a time if State
// is slow, for example because it asks another process.
const readers = 16

// readAll reads accounts and logs failures.
func (p *Pool) readAll(readings []reading) {
	const slow = 100 * time.Microsecond
	forEach(len(readings), readers, slow, func(i int) { p.readOne(&readings[i]) })
}

func (p *Pool) readOne(r *reading) {
	r.account, r.err = p.readAccount(r.in.address)
	if r.err != nil {
		p.cfg.Logger.Warn("txpool: cannot read an account, retrying with its next transaction", "err", r.err)
	}
}

// forEach calls f with 0 to n-1. If the first call takes longer than slow, the others run on
// at most the given number of goroutines. If it is fast, goroutines would cost more.
func forEach(n, most int, slow time.Duration, f func(int)) {
	began := time.Now()
	for i := range n {
		if i == 1 && time.Since(began) > slow {
			runConcurrently(1, n, most, f)
			return
		}
		f(i)
	}
}

// runConcurrently calls f with first to n-1, on at most the given number of goroutines.
func runConcurrently(first, n, most int, f func(int)) {
	var group errgroup.Group
	group.SetLimit(most)
	for i := first; i < n; i++ {
		group.Go(func() error { f(i); return nil })
	}
	_ = group.Wait() // no call fails
}

// applyReading applies the answer of State for an account that is still in the pool.
func (c *core) applyReading(r *reading) {
	a := r.in
	switch {
	case a.slot == closed: // removed meanwhile
	case r.err != nil:
		a.stale = true
	case a.differs(r.account):
		c.refreshAccount(a, r.account)
	}
}

// refreshAccount applies the host's state of an account.
func (c *core) refreshAccount(a *account, known Account) { c.applyPlan(c.decideState(a, known)) }

// batchSize is the number of transactions or accounts that the pool handles at a
// time if a caller passes many, so that memory and the time with the lock stay small.
const batchSize = 256
