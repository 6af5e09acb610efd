package txpool

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

// changeCore calls f under the lock, and then restores the caps. The caller delivers the events
// afterwards, without the lock, so that an observer may call any method.
func (p *Pool) changeCore(f func(*core)) {
	p.lockCore()
	defer p.mu.Unlock()
	f(p.core)
	p.core.restoreCaps()
}

// lockCore takes the lock for a call that changes the core, and sets the time of the core.
func (p *Pool) lockCore() {
	now := p.clock()
	p.mu.Lock()
	p.core.now = max(p.core.now, now) // another call may have waited less
}

// takeTurn takes p.turn, which excludes other calls with several steps. The caller must call end
// when it is done; end also delivers the events.
func (p *Pool) takeTurn() (end func()) {
	p.turn.Lock()
	return func() {
		p.turn.Unlock()
		p.deliverEvents()
	}
}

// clock returns the time by which the pool measures ages, in Unix nanoseconds. If Config.Now
// returns times with a monotonic reading, as time.Now does, the clock follows that reading. Setting
// the machine's clock then makes no transaction older or younger.
func (p *Pool) clock() int64 { return p.begun.UnixNano() + int64(p.cfg.Now().Sub(p.begun)) }

// readAccount reads an account from the host's state.
func (p *Pool) readAccount(address common.Address) (Account, error) {
	account, err := p.state.Account(address)
	if err != nil {
		return Account{}, fmt.Errorf("%w: %v: %w", ErrState, address, err)
	}
	return account, nil
}

// reading is a question to the host's State about an account, and its answer.
type reading struct {
	in      *account // of the sender when the reading began
	account Account
	err     error
}

// readers is how many accounts the pool reads at a time, at most, if the host's State is slow, for
// example because it asks another process.
const readers = 16

// readAll reads accounts from the host's state, and logs failures.
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

// forEach calls f with 0 to n-1. If the first call takes longer than slow, it makes the other calls
// on several goroutines, at most the given number. If the first call is fast, goroutines would cost
// more than they save.
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

// applyReading applies the answer of the host's State, if the account still has transactions in the
// pool.
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

// refreshAccount applies the nonce and the balance of an account in the host's state to its
// transactions.
func (c *core) refreshAccount(a *account, known Account) { c.applyPlan(c.decideState(a, known)) }

// batchSize is how many transactions or accounts the pool handles at a time if a caller passes
// many, so that it needs little memory and holds the lock only for a short time.
const batchSize = 256
