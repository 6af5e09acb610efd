package txpool

import (
	"sync"
	"sync/atomic"
	"time"
)

// reading is the answer of State for an account.
type reading struct {
	in      *account // of the sender when the reading began
	account Account
	err     error
}

// readers is the maximum number of accounts that the pool reads at a time if State
// is slow, for example because it asks another process.
const readers = 16

// readAll reads accounts and logs failures. If the first one takes long, it reads
// the others concurrently.
func (p *Pool) readAll(readings []reading) {
	const slow = 100 * time.Microsecond
	began := time.Now()
	for i := range readings {
		if i == 1 && time.Since(began) > slow {
			concurrently(readers, len(readings)-1, func(i int) { p.readOne(&readings[i+1]) })
			return
		}
		p.readOne(&readings[i])
	}
}

func (p *Pool) readOne(r *reading) {
	if r.account, r.err = p.account(r.in.address); r.err != nil {
		p.cfg.Logger.Warn("txpool: cannot read an account, retrying with its next transaction", "err", r.err)
	}
}

// concurrently calls f with 0 to n-1, on at most the given number of goroutines.
// If f panics, concurrently panics with the same value on the caller's goroutine.
func concurrently(most, n int, f func(int)) {
	var next atomic.Int64
	var panicked atomic.Pointer[any]
	var group sync.WaitGroup
	for range min(most, n) {
		group.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					panicked.Store(&r)
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	group.Wait()
	if r := panicked.Load(); r != nil {
		panic(*r)
	}
}
