package txpool

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

// changeCore calls f with the pool's lock held, and then brings the pool back within its caps. The
// caller delivers the events afterwards, without the lock, so that an observer may call any method
// of the pool.
func (p *Pool) changeCore(f func(*core)) {
	p.lockCore()
	defer p.mu.Unlock()
	f(p.core)
	p.core.restoreCaps()
}

// lockCore locks the pool for a change, and sets the core's time.
func (p *Pool) lockCore() {
	now := p.clock()
	p.mu.Lock()
	p.core.now = max(p.core.now, now) // another call may have waited less
}

// takeTurn locks p.turn, so that no other call with several steps can run. The
// caller must call end when it is done; end also delivers the events.
func (p *Pool) takeTurn() (end func()) {
	p.turn.Lock()
	return func() {
		p.turn.Unlock()
		p.deliverEvents()
	}
}

// clock returns the time by which the pool measures ages, in Unix nanoseconds. If the
// times of Config.Now have a monotonic reading, as those of time.Now do, the clock
// follows that reading, so that no transaction becomes older or younger when the
// machine's clock is set.
func (p *Pool) clock() int64 { return p.begun.UnixNano() + int64(p.cfg.Now().Sub(p.begun)) }

// readAccount reads an account from the host's state.
func (p *Pool) readAccount(address common.Address) (Account, error) {
	account, err := p.state.Account(address)
	if err != nil {
		return Account{}, fmt.Errorf("%w: %v: %w", ErrState, address, err)
	}
	return account, nil
}

// reading is one request to State for a sender's account, and its result.
type reading struct {
	in      *account // the sender's account when the reading began
	account Account
	err     error
}

// readers is the maximum number of accounts that the pool reads concurrently if the host's State is
// slow, for example because it calls another process.
const readers = 16

// readAll reads accounts from State, concurrently if State is slow, and logs failures.
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

// forEach calls f with 0 to n-1. If the first call takes longer than slow, forEach makes
// the other calls on several goroutines, up to the number most at a time. If the first
// call is fast, it makes all calls itself, because goroutines would cost more than they
// save.
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

// runConcurrently calls f with first to n-1 on several goroutines.
func runConcurrently(first, n, most int, f func(int)) {
	var group errgroup.Group
	group.SetLimit(most)
	for i := first; i < n; i++ {
		group.Go(func() error { f(i); return nil })
	}
	_ = group.Wait() // no call fails
}

// applyReading applies the answer of the host's State to the sender's transactions. It
// does nothing if the sender has no more transactions in the pool.
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

// refreshAccount stores an account's nonce and balance from the host's state, and drops
// the transactions that this state does not allow.
func (c *core) refreshAccount(a *account, known Account) { c.applyPlan(c.decideState(a, known)) }

// batchSize is how many transactions or accounts the pool processes at a time if a caller passes
// many. It limits how much memory a call needs, and how long the call holds the lock.
const batchSize = 256
