package txpool

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Pool is the mempool. It is safe for concurrent use. It starts no goroutine that outlives a call.
type Pool struct {
	cfg        Config
	state      State
	signer     types.Signer
	recoveries chan struct{} // a token for each signature that may be recovered at once

	// long is held by calls that work in slices: drains, commits, releases, resets, sweeps. They go one after another.
	long sync.Mutex

	mu     sync.Mutex // never held for more than a slice
	core   *core
	leases map[uint64]*Lease
	lastID uint64
	// generation counts the heads: accounts that were read before the newest one are not good any more.
	generation uint64
	frozen     *view // what readers see while a call works in slices; nil if none does

	out outbox
}

// slice is how many transactions, or accounts, are worked on before others get the lock.
const slice = 128

// New returns an empty pool. The error wraps [ErrInvalidConfig].
func New(cfg Config, state State) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if state == nil {
		return nil, fmt.Errorf("%w: State must be given", ErrInvalidConfig)
	}
	p := &Pool{cfg: cfg.withDefaults(), state: state, signer: types.NewPragueSigner(cfg.ChainID), leases: make(map[uint64]*Lease)}
	if p.cfg.MaxRecoveries == 0 {
		p.cfg.MaxRecoveries = runtime.GOMAXPROCS(0)
	}
	p.recoveries = make(chan struct{}, p.cfg.MaxRecoveries)
	p.core = newCore(&p.cfg)
	p.core.listening = p.listens()
	return p, nil
}

// Add admits a transaction. A nil error means that it is stored; whatever happens to it then is an event. Errors wrap one of
// the package's, or are Config.Precheck's, and change nothing.
func (p *Pool) Add(tx *types.Transaction) error { return p.add(tx, false) }

// AddPrivate is Add for a transaction that nobody outside should hear of: it is drained like any other and pays like any other, but
// Pending, Snapshot, Content and ordinary subscriptions do not show it.
func (p *Pool) AddPrivate(tx *types.Transaction) error { return p.add(tx, true) }

func (p *Pool) add(tx *types.Transaction, private bool) error {
	began := p.cfg.Now()
	e, from, err := p.examine(tx, began)
	if err == nil {
		e.private = private
		err = p.admit(e, from)
	}
	p.measure(began, err)
	return err
}

// AddRaw is Add for the binary encoding of a transaction (EIP-2718). It returns the transaction's hash if it was admitted.
func (p *Pool) AddRaw(raw []byte) (common.Hash, error) {
	tx, err := p.decode(raw)
	if err == nil {
		err = p.Add(tx)
	}
	if err != nil {
		return common.Hash{}, err
	}
	return tx.Hash(), nil
}

func (p *Pool) decode(raw []byte) (*types.Transaction, error) {
	if uint64(len(raw)) > p.cfg.MaxTxSize {
		return nil, fmt.Errorf("%w: transaction size %d, limit %d", ErrOversized, len(raw), p.cfg.MaxTxSize)
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return tx, nil
}

// examine makes the checks that need no account, the cheap ones first (invariant I8).
func (p *Pool) examine(tx *types.Transaction, now time.Time) (*entry, common.Address, error) {
	e, err := p.cfg.inspect(tx)
	if err != nil {
		return nil, common.Address{}, err
	}
	e.at = now.UnixNano()
	tx.Hash() // cached from now on
	p.mu.Lock()
	err = p.core.checkNew(e)
	p.mu.Unlock()
	if err != nil {
		return nil, common.Address{}, err
	}
	p.recoveries <- struct{}{}
	from, err := p.cfg.authenticate(p.signer, e)
	<-p.recoveries
	return e, from, err
}

// Prepared is a transaction that has passed all checks that need no account, its sender known. See Pool.Prepare.
type Prepared struct {
	entry *entry
	from  common.Address
}

// Sender returns who sent the transaction.
func (t *Prepared) Sender() common.Address { return t.from }

// Prepare does the part of Add that needs no lock: for hosts that recover signatures on workers of their own.
func (p *Pool) Prepare(tx *types.Transaction) (Prepared, error) {
	e, from, err := p.examine(tx, p.cfg.Now())
	return Prepared{e, from}, err
}

// AddPrepared is the rest of Add. A prepared transaction can be added to the pool that prepared it, once.
func (p *Pool) AddPrepared(t Prepared) error {
	if t.entry == nil || t.entry.account != nil {
		return fmt.Errorf("%w: not prepared, or added before", ErrMalformed)
	}
	return p.admit(t.entry, t.from)
}

// admit stores a transaction. It reads the sender's account outside the lock, if the pool does not know it.
func (p *Pool) admit(e *entry, from common.Address) error {
	var account Account
	var known *Account
	var read uint64
	for {
		p.mu.Lock()
		if known != nil && read != p.generation {
			known = nil // the chain moved meanwhile
		}
		need, err := p.core.add(e, from, known)
		read = p.generation
		told := p.unlock()
		if !need {
			if told {
				err = p.deliverFor(e, err)
			}
			return err
		}
		if account, err = p.account(from); err != nil {
			return err
		}
		known = &account
	}
}

// AddAll adds transactions one after another, as Add would, with their signatures recovered on all processors. It returns an error,
// or nil, for each.
func (p *Pool) AddAll(txs []*types.Transaction) []error {
	_, errs := p.addAll(len(txs), func(i int) (*types.Transaction, error) { return txs[i], nil })
	return errs
}

// AddAllRaw is AddAll for binary encodings. It returns a hash for each, zero where there is an error.
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
	p.examineAll(batch, get, began)
	p.admitAll(batch)
	errs := make([]error, n)
	for i := range batch {
		errs[i] = batch[i].err
		p.measure(began, errs[i])
	}
	return batch, errs
}

// examineAll is examine for many, on all processors.
func (p *Pool) examineAll(batch []candidate, get func(int) (*types.Transaction, error), now time.Time) {
	const share = 16 // few enough that all finish together, enough that sharing costs nothing
	var next atomic.Int64
	var group sync.WaitGroup
	work := func() {
		for {
			end := int(next.Add(share))
			for i := end - share; i < min(end, len(batch)); i++ {
				c := &batch[i]
				tx, err := get(i)
				if c.err = err; err == nil {
					c.entry, c.from, c.err = p.examine(tx, now)
				}
			}
			if end >= len(batch) {
				return
			}
		}
	}
	for range min(p.cfg.MaxRecoveries, (len(batch)+share-1)/share) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
}

// admitAll is admit for many, in slices.
func (p *Pool) admitAll(batch []candidate) {
	known := make(map[common.Address]Account)
	var read uint64
	for len(batch) > 0 {
		p.mu.Lock()
		if read != p.generation {
			clear(known)
			read = p.generation
		}
		done, missing := p.admitKnown(batch[:min(slice, len(batch))], known)
		told := p.unlock()
		if told {
			for i := range batch[:done] {
				batch[i].err = p.deliverFor(batch[i].entry, batch[i].err)
			}
		}
		for _, from := range missing {
			account, err := p.account(from)
			if err != nil { // whoever needs it fails, and the others go on
				for i := range batch[done:] {
					if c := &batch[done+i]; c.err == nil && c.from == from {
						c.err = err
					}
				}
				continue
			}
			known[from] = account
		}
		batch = batch[done:]
	}
}

// admitKnown admits transactions in order until one needs an account that is not known. It returns how many it has dealt with, and the
// accounts that the rest needs.
func (p *Pool) admitKnown(batch []candidate, known map[common.Address]Account) (done int, missing []common.Address) {
	for i := range batch {
		c := &batch[i]
		if c.err != nil {
			continue
		}
		var account *Account
		if k, there := known[c.from]; there {
			account = &k
		}
		need, err := p.core.add(c.entry, c.from, account)
		if need {
			return i, p.core.unknown(batch[i:], known)
		}
		c.err = err
	}
	return len(batch), nil
}

// unknown returns the senders whose accounts are not known.
func (c *core) unknown(batch []candidate, known map[common.Address]Account) []common.Address {
	var missing []common.Address
	for i := range batch {
		from := batch[i].from
		if _, there := known[from]; there || batch[i].err != nil {
			continue
		}
		if a := c.accounts[from]; a == nil || a.stale {
			missing = append(missing, from) // twice for two of one sender: then it is read twice, and no harm done
		}
	}
	return missing
}

// account reads the host's state.
func (p *Pool) account(address common.Address) (Account, error) {
	account, err := p.state.Account(address)
	if err != nil {
		return Account{}, fmt.Errorf("%w: %v: %w", ErrState, address, err)
	}
	return account, nil
}

// measure tells the metrics how an Add went.
func (p *Pool) measure(began time.Time, err error) {
	if !p.cfg.Metrics.enabled() {
		return
	}
	if err != nil {
		p.cfg.Metrics.count(CountRejected, label(err))
		return
	}
	p.cfg.Metrics.observe(AdmitSeconds, p.cfg.Now().Sub(began).Seconds())
}

// Remove drops a transaction. Errors wrap ErrNotFound, or ErrInBundle for one in an open lease.
func (p *Pool) Remove(hash common.Hash) error {
	return p.change(func(c *core) error {
		e := c.all[hash]
		if e == nil {
			return fmt.Errorf("%w: %s", ErrNotFound, hash)
		}
		if e.lease != nil {
			return fmt.Errorf("%w: %s", ErrInBundle, hash)
		}
		c.dropEntry(e, Dropped, ErrRemoved)
		return nil
	})
}

// Reject drops a transaction that failed in building, out of its lease if it is in one, and refuses it for Config.QuarantineTime (invariant
// I14). The reason is that of the event. Errors wrap ErrNotFound.
func (p *Pool) Reject(hash common.Hash, reason error) error {
	now := p.cfg.Now().UnixNano()
	return p.change(func(c *core) error {
		e := c.all[hash]
		if e == nil {
			return fmt.Errorf("%w: %s", ErrNotFound, hash)
		}
		c.reject(e, reason, now)
		return nil
	})
}

// reject drops a transaction for good reason.
func (c *core) reject(e *entry, reason error, now int64) {
	c.bury(e, ErrQuarantined, now, c.cfg.QuarantineTime)
	c.dropEntry(e, Dropped, reason)
}

// change runs f under the lock, puts what it moved within the caps, and delivers the events afterwards.
func (p *Pool) change(f func(*core) error) error {
	p.mu.Lock()
	err := f(p.core)
	p.core.shrink()
	if p.unlock() {
		p.deliver()
	}
	return err
}

// unlock releases the lock and reports whether there is something to deliver.
func (p *Pool) unlock() bool {
	told := len(p.core.events) > 0
	p.mu.Unlock()
	return told
}
