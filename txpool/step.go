package txpool

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

// changeCore calls f with the pool's lock held, and then restores the caps. The caller
// delivers the events afterwards without the lock, so that an observer may call any
// method of the pool.
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

// takeTurn keeps out other calls with several steps until the caller calls end.
func (p *Pool) takeTurn() (end func()) {
	p.turn.Lock()
	return func() {
		p.turn.Unlock()
		// Without a lock, so that an observer may call any method of the pool.
		p.deliverEvents()
	}
}

// clock returns the time by which ages are measured, in Unix nanoseconds. If Config.Now
// returns times with a monotonic reading, as time.Now does, the clock follows that
// reading, so that no transaction becomes older or younger when the machine's clock is
// set.
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

// readers is the maximum number of accounts that the pool reads at the same time if the
// host's State is slow, for example because it calls another process.
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

// forEach calls f with 0 to n-1, on several goroutines if f is slow.
func forEach(n, most int, slow time.Duration, f func(int)) {
	began := time.Now()
	for i := range n {
		if i == 1 && time.Since(began) > slow {
			// The first call was slow, so run the others at the same time. Fast calls stay on
			// one goroutine, because starting others would cost more than it saves.
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

// applyReading applies the answer of the host's State to the sender's transactions.
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

// refreshAccount stores an account's nonce and balance, and drops the transactions that
// they rule out.
func (c *core) refreshAccount(a *account, known Account) { c.applyPlan(c.decideState(a, known)) }

// batchSize is how many transactions or accounts the pool processes at a time if a
// caller passes many. It limits how much memory a call needs, and how long the call
// holds the lock.
const batchSize = 256
