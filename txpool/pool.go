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

// Pool is a transaction pool: it stores the transactions of users until they are in a block. It is
// safe for concurrent use.
//
// The pool starts goroutines only within a call and waits for them before the call
// returns, except that ReplayChange recovers senders in the background. Events are
// delivered to Config.Observe by the goroutines that call the pool. If several
// calls run at the same time, one of them delivers the events of all.
type Pool struct {
	cfg        Config
	lenient    Config // rules for transactions that come back
	state      State
	signer     types.Signer
	recoverers int                 // number of concurrent recoveries
	recoveries *semaphore.Weighted // limits them

	begun   time.Time // start of the pool's clock
	sweptAt atomic.Int64

	// turn is locked by calls that change the pool in several steps, such as Next and
	// Reset. They release mu between their steps, and turn keeps the others out.
	turn sync.Mutex

	mu       sync.Mutex // protects the fields below
	core     *core
	poisoned [][]byte // records that Restore cannot read
	replayed *history // records of ReplayChange, until Restore; nil if there are none

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

// Add checks a transaction and stores it in the pool. If Add returns nil, the pool has the
// transaction, and later events report whether it is replaced, dropped or included in a block. If
// Add returns an error, nothing has changed. The error wraps one of this package's errors, or it is
// the error of Config.Precheck.
func (p *Pool) Add(tx *types.Transaction) error { return p.addOne(candidate{tx: tx}).err }

// AddPrivate adds a transaction that must stay secret until it is in a block. The pool treats a
// private transaction like any other, except that Snapshot and Content do not show it, and its
// events have Private set so that the host does not publish them.
func (p *Pool) AddPrivate(tx *types.Transaction) error {
	return p.addOne(candidate{tx: tx, private: true}).err
}

func (p *Pool) addOne(t candidate) candidate {
	one := [1]candidate{t}
	p.addBatch(one[:])
	return one[0]
}

// AddRaw adds a transaction given by its binary encoding (EIP-2718), as
// eth_sendRawTransaction receives it. If the transaction is admitted, AddRaw
// returns its hash.
func (p *Pool) AddRaw(raw []byte) (common.Hash, error) {
	t := p.addOne(candidate{raw: raw})
	if t.err != nil {
		return common.Hash{}, t.err
	}
	return t.entry.hash(), nil
}

// AddAll adds transactions in order. The result is the same as calling Add for each
// transaction (invariant I10), but AddAll is faster, because it recovers the
// signatures on all processors. For each transaction it returns an error, or nil if
// the transaction was admitted.
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

// AddAllRaw adds transactions given by their binary encodings (EIP-2718), in order
// and as fast as AddAll. For each transaction it returns the hash if the
// transaction was admitted, and otherwise the zero hash and an error.
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

// addBatch takes transactions through all stages of admission, and stores their errors.
func (p *Pool) addBatch(batch []candidate) {
	now := p.clock()
	p.expireDue(now)
	for some := range slices.Chunk(batch, batchSize) {
		// Only the examination runs on all processors. The candidates are admitted in
		// order, so the result is the same as if they were added one by one (invariant
		// I10).
		p.examineAll(some, now)
		p.admitAll(some)
		p.deliverEvents()
	}
}

// Remove drops a transaction from the pool. The error wraps ErrNotFound if the pool does not have
// the transaction, or ErrInBundle if a session has locked it.
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

// Reject drops a transaction that failed while a block was built, even if a session has locked it.
// The pool refuses the same transaction for Config.QuarantineTime, so that it cannot fail again and
// again (invariant I14). reason becomes Event.Reason; nil means ErrQuarantined. The error wraps
// ErrNotFound if the pool does not have the transaction.
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
