package mempool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/txpool"
)

var (
	// ErrNotRecovered is wrapped by the error of a change before [Pool.Recovered], when the
	// pool has no log.
	ErrNotRecovered = errors.New("mempool: no builder has recovered the pool")
	// ErrPanic is the error of all changes after a function of the host has panicked while a
	// block was applied or undone. The builder stops then, and must be opened again with a new
	// pool: its log has all transactions that were accepted.
	ErrPanic = errors.New("mempool: a function of the host has panicked while a block was applied or undone")
)

// Pool is a txpool.Pool whose changes are records in a builder's log. It implements
// builder.Operations. Create one with [New].
type Pool struct {
	*txpool.Pool
	log     *slog.Logger
	baseFee func() *big.Int
	save    atomic.Pointer[func() error] // of the builder, nil before Recovered
	failed  atomic.Bool                  // see ErrPanic

	// moving is held while the transactions of an undone block go from the state to the
	// pool. Additions wait at the gate meanwhile, and readers for the lock.
	moving sync.RWMutex
	gate   gate

	// The goroutine of the builder owns these.
	history   history
	recovered bool

	mu       sync.Mutex
	returned [][]byte // records of undone blocks whose transactions the pool has, for TakeChanges
}

// New returns an empty pool, which takes transactions after [Pool.Recovered]. state must
// show the accounts after the newest block that the rollup has applied. baseFee returns
// the base fee of the next block, in wei per gas; nil means a rollup without one.
//
// The pool recovers from no panic of state, baseFee or a function of cfg. A panic comes out of Add,
// Build or Next, which can be called again. Batches and slow accounts are examined on several
// goroutines; a panic of one of these ends the process. If a block is applied or undone, the pool
// takes no more after a panic, and the builder stops, because it would repeat Apply or Undo of a
// state that has changed already: see ErrPanic. If cfg.Sender fails for a block that is undone, the
// transaction is held aside. cfg.Logger also gets the transactions that do not stay in the pool or
// do not return to it. cfg.Observe must not call Add and its variants, Hold and the builder's
// Submit, because they wait while an undone block returns. The error is that of txpool.New.
func New(cfg txpool.Config, state txpool.State, baseFee func() *big.Int) (*Pool, error) {
	p := &Pool{log: cfg.Logger, baseFee: baseFee, gate: newGate()}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if baseFee == nil {
		p.baseFee = func() *big.Int { return nil }
	}
	cfg.KeepChanges = true
	var err error
	p.Pool, err = txpool.New(cfg, state)
	return p, err
}

// Admit implements builder.Operations. op is the binary encoding of a transaction. The error wraps
// txpool.ErrAlreadyKnown only when the log has the transaction.
func (p *Pool) Admit(_ context.Context, op []byte) error {
	save, err := p.opened()
	if err != nil {
		return err
	}
	p.enter(func() { _, err = p.Pool.AddRaw(op) })
	if errors.Is(err, txpool.ErrAlreadyKnown) {
		return cmp.Or(save(), err)
	}
	return err
}

// enter calls an addition when no block is being undone.
func (p *Pool) enter(add func()) {
	defer p.gate.pass()()
	add()
}

// opened returns the function that saves changes, and an error if the pool takes none.
func (p *Pool) opened() (save func() error, err error) {
	switch found := p.save.Load(); {
	case found == nil:
		return nil, ErrNotRecovered
	case p.failed.Load():
		return nil, ErrPanic
	default:
		return *found, nil
	}
}

// admit calls an addition, and saves what it has changed. The addition returns whether the pool
// has a transaction now: a refused one does not wait for the log.
func (p *Pool) admit(add func() (has bool)) error {
	save, err := p.opened()
	if err != nil {
		return err
	}
	has := false
	if p.enter(func() { has = add() }); !has {
		return nil
	}
	return save()
}

// isKnown reports whether the pool has a transaction for which an addition has returned err.
func isKnown(err error) bool { return err == nil || errors.Is(err, txpool.ErrAlreadyKnown) }

// Hold makes blocks that are undone wait until release is called, so that the calls in
// between see a transaction either in a block or in the pool. They must not be Add or one of
// its variants, which wait for an undone block.
func (p *Pool) Hold() (release func()) {
	p.moving.RLock()
	return p.moving.RUnlock
}

// Add adds a transaction. It is in the builder's log when Add returns nil. The errors are
// those of txpool.Pool.Add, ErrNotRecovered, or wrap builder.ErrLog or builder.ErrStopped, as for
// all variants of Add.
func (p *Pool) Add(tx *types.Transaction) error { return p.addOne(p.Pool.Add, tx) }

// AddPrivate is Add for a transaction that is not shown to others.
func (p *Pool) AddPrivate(tx *types.Transaction) error { return p.addOne(p.Pool.AddPrivate, tx) }

func (p *Pool) addOne(add func(*types.Transaction) error, tx *types.Transaction) (err error) {
	problem := p.admit(func() bool { err = add(tx); return isKnown(err) })
	return cmp.Or(problem, err)
}

// AddRaw is Add for the binary encoding of a transaction.
func (p *Pool) AddRaw(raw []byte) (hash common.Hash, err error) {
	problem := p.admit(func() bool { hash, err = p.Pool.AddRaw(raw); return isKnown(err) })
	if err = cmp.Or(problem, err); err != nil {
		return common.Hash{}, err
	}
	return hash, nil
}

// AddAll adds transactions, with an error for each.
func (p *Pool) AddAll(txs []*types.Transaction) (errs []error) {
	problem := p.admit(func() bool { errs = p.Pool.AddAll(txs); return slices.ContainsFunc(errs, isKnown) })
	return withProblem(problem, errs, len(txs))
}

// AddAllRaw is AddAll for binary encodings.
func (p *Pool) AddAllRaw(raws [][]byte) (hashes []common.Hash, errs []error) {
	problem := p.admit(func() bool { hashes, errs = p.Pool.AddAllRaw(raws); return slices.ContainsFunc(errs, isKnown) })
	if problem != nil {
		hashes = make([]common.Hash, len(raws))
	}
	return hashes, withProblem(problem, errs, len(raws))
}

// withProblem returns n errors: those of the pool, and a problem of the log for the transactions
// that the pool has.
func withProblem(problem error, errs []error, n int) []error {
	if errs == nil {
		errs = make([]error, n)
	}
	for i, err := range errs {
		if problem != nil && isKnown(err) {
			errs[i] = problem
		}
	}
	return errs
}

// Remove drops a transaction: see txpool.Pool.Remove. It does not come back after a restart when
// Remove returns nil.
func (p *Pool) Remove(hash common.Hash) error {
	return p.change(func() error { return p.Pool.Remove(hash) })
}

// Reject drops a transaction that failed while a block was built: see txpool.Pool.Reject.
func (p *Pool) Reject(hash common.Hash, reason error) error {
	return p.change(func() error { return p.Pool.Reject(hash, reason) })
}

// change makes a change that is no addition, and saves it.
func (p *Pool) change(make func() error) error {
	save, err := p.opened()
	if err != nil {
		return err
	}
	if err := make(); err != nil {
		return err
	}
	return save()
}

// Applied removes the transactions of a block. Rollup.Apply calls it last, when
// txpool.State shows the block.
func (p *Pool) Applied(block txpool.Block) {
	if !p.recovered {
		return // Recovered reads the accounts
	}
	defer p.refuseAfterPanic()
	p.logDisplaced(p.Reset(txpool.Head{Included: []txpool.Block{block}, BaseFee: p.baseFee()}))
}

// Undone lets the transactions of a block wait again. Rollup.Undo calls it. The number is
// for operators. undo restores the state before the block, so that txpool.State shows it. The
// error is that of undo, which must then have changed nothing. After a panic it is ErrPanic, and
// undo is not called.
func (p *Pool) Undone(number uint64, block txpool.Block, undo func() error) error {
	if p.failed.Load() {
		return ErrPanic
	}
	defer p.gate.close(p.log)()
	p.moving.Lock()
	defer p.moving.Unlock()
	defer p.refuseAfterPanic()
	if err := undo(); err != nil {
		return err
	}
	p.history.undo(number, block)
	if p.recovered {
		p.takeBack()
	}
	return nil
}

// takeBack lets the transactions of undone blocks wait again, and records that the pool has
// them.
func (p *Pool) takeBack() {
	head := txpool.Head{BaseFee: p.baseFee()}
	var records [][]byte
	for _, b := range slices.Backward(p.history.undone) {
		head.Reverted = append(head.Reverted, b.block)
		records = append(records, returned(b.count))
		p.log.Warn("a block failed; its transactions are executed again", "block", b.number, "transactions", len(b.block.Transactions))
	}
	p.logDisplaced(p.Reset(head))
	p.history.undone = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	p.returned = append(p.returned, records...)
}

// TakeChanges implements builder.Operations. The record of an undone block comes after the records
// of its transactions, which the pool got before. After a panic in Applied or Undone, TakeChanges
// panics too, so that the builder stops, and no user gets an answer for a change that is not in the
// log.
func (p *Pool) TakeChanges() [][]byte {
	if p.failed.Load() {
		panic(ErrPanic)
	}
	p.mu.Lock()
	returned := p.returned
	p.returned = nil
	p.mu.Unlock()
	return append(framed(p.Pool.TakeChanges()), returned...)
}

// refuseAfterPanic is deferred by the calls that follow a change of the rollup's state. If a
// function of the host panics, the builder makes the change again, and the pool would drop
// transactions because of a state that has it twice. So the pool takes no more, and the log gets
// nothing more of it.
func (p *Pool) refuseAfterPanic() {
	if r := recover(); r != nil {
		p.failed.Store(true)
		panic(r)
	}
}

// Owns reports whether a record of the rollup is one of a pool. Other records of a rollup
// must not begin with the bytes 'P' and 'R'.
func Owns(record []byte) bool {
	return len(record) > 0 && (record[0] == recordPool || record[0] == recordReturned)
}

// Records returns the content of the pool for a checkpoint. It may be called after
// Recovered.
func (p *Pool) Records() [][]byte {
	return append(framed(p.Pool.Records()), returned(p.history.count))
}

// ReplayChange implements builder.Operations. It also takes the records of a checkpoint. The error
// wraps ErrRecord.
func (p *Pool) ReplayChange(_ context.Context, change []byte) error {
	if p.recovered {
		return fmt.Errorf("%w: it comes after Recovered", ErrRecord)
	}
	if len(change) > 0 && change[0] == recordPool {
		p.Pool.ReplayChange(change[1:])
		return nil
	}
	return p.history.read(change)
}

// Recovered implements builder.Operations. The pool then has all transactions of the log
// that are in no block; it holds those aside that it cannot admit now.
func (p *Pool) Recovered(_ context.Context, save func() error) error {
	if p.recovered {
		return fmt.Errorf("%w: Recovered is called twice", ErrRecord)
	}
	p.recovered = true
	p.logDisplaced(p.Restore().Displaced)
	p.takeBack()
	p.save.Store(&save)
	return nil
}

// logDisplaced logs the transactions that did not stay in the pool or did not return to
// it.
func (p *Pool) logDisplaced(displaced []txpool.Displaced) {
	for _, d := range displaced {
		if d.Held {
			p.log.Warn("transaction held aside; the pool tries again", "tx", d.Tx.Hash(), "reason", d.Err)
		} else {
			p.log.Warn("transaction left the pool", "tx", d.Tx.Hash(), "reason", d.Err)
		}
	}
}
