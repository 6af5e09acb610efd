package txpool

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// AddAll adds transactions in order, with the same result as one Add after the
// other (invariant I10). It recovers signatures on all processors. The result
// has one error or nil per transaction.
func (p *Pool) AddAll(txs []*types.Transaction) []error {
	_, errs := p.addAll(len(txs), func(i int) (*types.Transaction, error) { return txs[i], nil })
	return errs
}

// AddAllRaw is AddAll for binary encodings (EIP-2718). It also returns one hash
// per transaction, which is zero if there is an error.
func (p *Pool) AddAllRaw(raws [][]byte) ([]common.Hash, []error) {
	batch, errs := p.addAll(len(raws), func(i int) (*types.Transaction, error) { return p.decode(raws[i]) })
	hashes := make([]common.Hash, len(raws))
	for i := range batch {
		if errs[i] == nil {
			hashes[i] = batch[i].entry.hash()
		}
	}
	return hashes, errs
}

func (p *Pool) addAll(n int, get func(int) (*types.Transaction, error)) ([]candidate, []error) {
	began := p.cfg.Now()
	batch := make([]candidate, n)
	line := inOrder{pool: p, batch: batch, examined: make([]atomic.Bool, (n+share-1)/share)}
	p.examineAll(batch, get, began, line.arrived)
	line.admit() // shares left by other goroutines
	errs := make([]error, n)
	for i := range batch {
		errs[i] = batch[i].err
		p.measure(began, errs[i])
	}
	return batch, errs
}

// share is the number of transactions that are examined together. It is small
// enough that all processors finish at about the same time, and large enough
// that the distribution costs little.
const share = 16

// examineAll is examine for a batch. It recovers signatures on all processors.
// If the senders are already known, it uses one, which is faster. If then is
// not nil, it is called with the index of each finished share, possibly from
// several goroutines concurrently.
func (p *Pool) examineAll(batch []candidate, get func(int) (*types.Transaction, error), now time.Time, then func(int)) {
	// slow is the time per transaction that tells a recovery from other work: a
	// recovery takes about ten times as long, other work a tenth.
	const slow = 3 * time.Microsecond
	var next atomic.Int64
	work := func() bool {
		number := int(next.Add(1)) - 1
		begin := number * share
		if begin >= len(batch) {
			return false
		}
		end := min(begin+share, len(batch))
		for i := begin; i < end; i++ {
			batch[i].tx, batch[i].err = get(i)
		}
		p.examine(batch[begin:end], now)
		if then != nil {
			then(number)
		}
		return true
	}
	var group sync.WaitGroup
	var panicked atomic.Pointer[any]
	defer func() {
		group.Wait()
		if r := panicked.Load(); r != nil {
			panic(*r) // on the caller's goroutine
		}
	}()
	alone := true
	for began := time.Now(); work(); began = time.Now() {
		if alone && time.Since(began) > share*slow {
			alone = false
			for range p.cfg.MaxRecoveries - 1 {
				group.Go(func() {
					defer func() {
						if r := recover(); r != nil {
							panicked.Store(&r)
						}
					}()
					for work() {
					}
				})
			}
		}
	}
}

// inOrder admits the shares of a batch in order, regardless of the order in
// which they are examined, while others are still being examined.
type inOrder struct {
	pool     *Pool
	batch    []candidate
	examined []atomic.Bool // by index of the share

	mu       sync.Mutex
	admitted int // number of shares
}

// arrived records that a share was examined.
func (o *inOrder) arrived(number int) {
	o.examined[number].Store(true)
	o.admit()
}

// admit admits all shares that are ready, unless another goroutine is doing so.
func (o *inOrder) admit() {
	if !o.mu.TryLock() {
		return
	}
	defer o.mu.Unlock()
	for o.admitted < len(o.examined) && o.examined[o.admitted].Load() {
		begin := o.admitted * share
		o.pool.admitAll(o.batch[begin:min(begin+share, len(o.batch))])
		o.pool.deliverSome(deliverShare)
		o.admitted++
	}
}

// admitAll is admit for a batch, in slices.
func (p *Pool) admitAll(batch []candidate) {
	var accounts [slice]Account
	if len(batch) > 0 && batch[0].back {
		// Transactions that come back are accepted even if the journal fails.
	} else if err := p.retryJournal(); err != nil {
		for i := range batch {
			if batch[i].err == nil {
				batch[i].err = err
			}
		}
		return
	}
	for len(batch) > 0 {
		now := batch[:min(slice, len(batch))]
		if now[0].early { // its turn: examine again
			now[0].early, now[0].err = false, nil
			p.examine(now[:1], time.Unix(0, now[0].entry.at))
		}
		generation := p.readUnknown(now, accounts[:])
		p.lock()
		done := 0
		if generation == p.generation { // the accounts are current
			done = p.core.addAll(now, accounts[:])
		}
		told := p.unlock()
		if told {
			for i := range now[:done] {
				if now[i].back {
					_ = p.writeDown() // the next Add returns the error
					break
				}
				now[i].err = p.secure(now[i].entry, now[i].err)
			}
		}
		if batch = batch[done:]; len(batch) > 0 {
			p.pause()
		}
	}
}

// addAll admits transactions in order until one needs an account that was not
// read, or must be examined again. It returns how many it has processed.
func (c *core) addAll(batch []candidate, accounts []Account) int {
	for i := range batch {
		t := &batch[i]
		if t.early {
			if t.err = c.checkNew(t.entry); t.err == nil {
				return i
			}
			t.early = false
		}
		if t.err != nil {
			continue
		}
		var known *Account
		if t.read {
			known = &accounts[i]
		}
		need, err := c.add(t.entry, t.from, known)
		if need {
			return i
		}
		t.err = err
	}
	return len(batch)
}

// readUnknown reads the accounts that the pool does not know into the elements
// of accounts with the index of their candidates. It returns the generation
// that they belong to.
func (p *Pool) readUnknown(batch []candidate, accounts []Account) uint64 {
	p.lock()
	generation := p.generation
	for i := range batch {
		t := &batch[i]
		if t.read = false; t.err == nil {
			a := p.core.accounts.get(t.from)
			t.read = a == nil && !p.core.cache.has(t.from) || a != nil && a.stale
		}
	}
	p.mu.Unlock()
	for i := range batch {
		if t := &batch[i]; t.read {
			accounts[i], t.err = p.account(t.from)
		}
	}
	return generation
}
