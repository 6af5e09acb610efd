package txpool

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/semaphore"
)

// Pool is a transaction pool. It is safe for concurrent use. No goroutine of it outlives a call,
// except while records are replayed: see ReplayChange. Events are delivered to Config.Observe by
// the calls that cause them; if several calls run at the same time, one of them delivers the events
// of all.
type Pool struct {
	cfg        Config
	lenient    Config // for transactions that come back
	state      State
	signer     types.Signer
	recoverers int                 // number of concurrent recoveries
	recoveries *semaphore.Weighted // limits them

	begun   time.Time // beginning of the pool's clock
	sweptAt atomic.Int64

	// turn is held by calls that change the pool in several steps, such as Next,
	// Reset and CleanupExpired, so that they exclude one another.
	turn sync.Mutex

	mu       sync.Mutex // of all that follows
	core     *core
	poisoned [][]byte // records that Restore cannot read
	replayed *history // the records of ReplayChange, until Restore

	delivering sync.Mutex // held by the goroutine that calls Config.Observe
}

// New returns an empty pool. The error wraps [ErrInvalidConfig].
func New(cfg Config, state State) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if state == nil {
		return nil, fmt.Errorf("%w: State must be given", ErrInvalidConfig)
	}
	p := &Pool{
		cfg: cfg.withDefaults(), state: state, signer: types.NewPragueSigner(cfg.ChainID),
		recoverers: runtime.GOMAXPROCS(0),
	}
	p.begun = p.cfg.Now()
	p.sweptAt.Store(p.clock())
	p.lenient = p.cfg.lenient()
	p.recoveries = semaphore.NewWeighted(int64(p.recoverers))
	p.core = newCore(&p.cfg)
	return p, nil
}

// Add admits a transaction. If it returns nil, the pool has stored the transaction, and events
// report what becomes of it. Otherwise nothing has changed, and the error wraps one of this
// package's errors or is that of Config.Precheck.
func (p *Pool) Add(tx *types.Transaction) error { return p.addOne(candidate{tx: tx}).err }

// AddPrivate adds a transaction that must stay secret until it is in a block. The pool treats it
// like any other, but Snapshot and Content do not show it, and its events have Private set.
func (p *Pool) AddPrivate(tx *types.Transaction) error {
	return p.addOne(candidate{tx: tx, private: true}).err
}

func (p *Pool) addOne(t candidate) candidate {
	one := [1]candidate{t}
	p.addBatch(one[:])
	return one[0]
}

// AddRaw adds a transaction by its binary encoding (EIP-2718). It returns the hash of the
// transaction if it was admitted.
func (p *Pool) AddRaw(raw []byte) (common.Hash, error) {
	t := p.addOne(candidate{raw: raw})
	if t.err != nil {
		return common.Hash{}, t.err
	}
	return t.entry.hash(), nil
}

// AddAll adds transactions in order. The result is the same as if Add were called for one after the
// other (invariant I10), but AddAll recovers signatures on all processors. It returns one error or
// nil for each transaction.
func (p *Pool) AddAll(txs []*types.Transaction) []error {
	batch, errs := make([]candidate, len(txs)), make([]error, len(txs))
	for i, tx := range txs {
		batch[i].tx = tx
	}
	p.addBatch(batch)
	for i := range batch {
		errs[i] = batch[i].err
	}
	return errs
}

// AddAllRaw adds transactions by their binary encodings (EIP-2718), as AddAll does. For each of
// them it returns the hash, or zero and an error.
func (p *Pool) AddAllRaw(raws [][]byte) ([]common.Hash, []error) {
	batch, errs := make([]candidate, len(raws)), make([]error, len(raws))
	for i, raw := range raws {
		batch[i].raw = raw
	}
	p.addBatch(batch)
	hashes := make([]common.Hash, len(raws))
	for i := range batch {
		errs[i] = batch[i].err
		if errs[i] == nil {
			hashes[i] = batch[i].entry.hash()
		}
	}
	return hashes, errs
}

// addBatch takes transactions through all stages, with the same result as one after the other
// (invariant I10).
func (p *Pool) addBatch(batch []candidate) {
	now := p.clock()
	p.expireDue(now)
	for some := range slices.Chunk(batch, batchSize) {
		p.examineAll(some, now)
		p.admitAll(some)
		p.deliverEvents()
	}
}

// Remove drops a transaction. Errors wrap ErrNotFound, or ErrInBundle if the
// transaction is locked by a session.
func (p *Pool) Remove(hash common.Hash) (err error) {
	defer p.deliverEvents()
	p.changeCore(func(c *core) {
		e := c.all[hash]
		switch {
		case e == nil:
			err = fmt.Errorf("%w: %s", ErrNotFound, hash)
		case e.locked:
			err = fmt.Errorf("%w: %s", ErrInBundle, hash)
		default:
			c.applyPlan(planDrop(e, ErrRemoved))
		}
	})
	return err
}

// Reject drops a transaction that failed while a block was built, even if it is locked, and refuses
// it for Config.QuarantineTime (invariant I14). reason becomes Event.Reason; nil means
// ErrQuarantined. The error wraps ErrNotFound.
func (p *Pool) Reject(hash common.Hash, reason error) (err error) {
	defer p.deliverEvents()
	p.changeCore(func(c *core) {
		e := c.all[hash]
		if e == nil {
			err = fmt.Errorf("%w: %s", ErrNotFound, hash)
			return
		}
		c.rejectEntry(e, reason)
	})
	return err
}
