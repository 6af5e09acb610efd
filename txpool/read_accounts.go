package txpool

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// reading is the answer of State for an account.
type reading struct {
	address common.Address
	in      *account // of the address when the reading began
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
			p.readConcurrently(readings[1:])
			return
		}
		p.readOne(&readings[i])
	}
}

func (p *Pool) readOne(r *reading) {
	if r.account, r.err = p.account(r.address); r.err != nil {
		p.cfg.Logger.Warn("txpool: cannot read an account, retrying with its next transaction", "err", r.err)
	}
}

// readConcurrently reads accounts on several goroutines. If State panics on one of
// these goroutines, readConcurrently panics with the same value on the caller's.
func (p *Pool) readConcurrently(readings []reading) {
	var next atomic.Int64
	var panicked atomic.Pointer[any]
	var group sync.WaitGroup
	for range min(readers, len(readings)) {
		group.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					panicked.Store(&r)
				}
			}()
			for i := next.Add(1) - 1; int(i) < len(readings); i = next.Add(1) - 1 {
				p.readOne(&readings[i])
			}
		})
	}
	group.Wait()
	if r := panicked.Load(); r != nil {
		panic(*r)
	}
}
