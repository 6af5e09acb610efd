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
	// ErrNotRecovered is wrapped by the error of a change if the builder has
	// not called [Pool.Recovered] yet, because the pool then has no log to
	// write the change to.
	ErrNotRecovered = errors.New("mempool: no builder has recovered the pool")
	// ErrPanic is returned by all changes after a function of the host has
	// panicked while a block was applied or undone. The builder then stops, and
	// the host must open it again with a new pool. No accepted transaction is
	// lost, because the log has all of them.
	ErrPanic = errors.New("mempool: a function of the host has panicked while a block was applied or undone")
)

// Pool is a txpool.Pool that writes its changes to a builder's log, so that no
// accepted transaction is lost in a crash. It implements builder.Operations.
// Create a pool with [New].
type Pool struct {
	*txpool.Pool
	log     *slog.Logger
	baseFee func() *big.Int
	save    atomic.Pointer[func() error] // writes changes to the log; nil before Recovered
	failed  atomic.Bool                  // see ErrPanic

	// moving is held while the transactions of an undone block return to the pool, when they
	// are neither in a block nor in the pool. Hold waits for it, and new transactions wait at
	// the gate.
	moving sync.RWMutex
	gate   gate

	// Only the builder's goroutine uses the fields history and recovered.
	history   history
	recovered bool

	mu       sync.Mutex
	returned [][]byte // records for TakeChanges: the pool has the transactions of an undone block
}

// New returns an empty pool, which accepts transactions after [Pool.Recovered]
// was called. state must show the accounts after the newest block that the
// rollup has applied. baseFee returns the base fee of the next block, in wei
// per gas; nil means that the rollup has no base fee. The error is that of
// txpool.New.
//
// The pool does not recover from a panic of state, baseFee or a function of
// cfg:
//
//   - Usually the panic passes through Add, Build or Next, and the caller can
//     call the method again.
//   - If the panic happens on one of the goroutines that examine batches and
//     slow accounts, it ends the process.
//   - If the panic happens while a block is applied or undone, the pool accepts
//     no more changes and the builder stops. Otherwise the builder would repeat
//     Apply or Undo on a state that has already changed: see ErrPanic.
//
// If cfg.Sender fails for a transaction of a block that is undone, the pool
// holds the transaction aside. The pool reports to cfg.Logger which
// transactions do not stay in it or cannot return to it. cfg.Observe must not
// call Hold, Add or a variant of Add, or Submit of the builder, because these
// calls wait while a block is undone.
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

// Admit implements builder.Operations. op is a transaction in its binary encoding.
// If the error wraps txpool.ErrAlreadyKnown, the transaction is already in the log.
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

// enter calls add, which adds transactions, while no block is being undone.
func (p *Pool) enter(add func()) {
	defer p.gate.pass()()
	add()
}

// opened returns the function that saves changes, or an error if none are possible.
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

// admit calls add, which adds transactions, and then writes the changes to the log.
func (p *Pool) admit(add func() (has bool)) error {
	save, err := p.opened()
	if err != nil {
		return err
	}
	has := false
	if p.enter(func() { has = add() }); !has {
		// The pool has none of the transactions, so there is nothing to wait for.
		return nil
	}
	return save()
}

// isKnown reports whether the pool has a transaction, given the result of adding it.
func isKnown(err error) bool { return err == nil || errors.Is(err, txpool.ErrAlreadyKnown) }

// Hold delays the undoing of blocks until release is called, so that the caller
// sees each transaction either in a block or in the pool. Between the two
// calls, the caller must not call Add or one of its variants, because these
// calls may wait for an undone block.
func (p *Pool) Hold() (release func()) {
	p.moving.RLock()
	return p.moving.RUnlock
}

// Add adds a transaction to the pool and to the builder's log. The transaction
// is durable when Add returns nil. As for all variants of Add, the error is one
// of txpool.Pool.Add, ErrNotRecovered or ErrPanic, or it wraps builder.ErrLog
// or builder.ErrStopped.
func (p *Pool) Add(tx *types.Transaction) error { return p.addOne(p.Pool.Add, tx) }

// AddPrivate is like Add, for a transaction that must not be shown to others until
// it is in a block.
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

// AddAll adds several transactions. It returns one error, or nil, for each of them.
func (p *Pool) AddAll(txs []*types.Transaction) (errs []error) {
	problem := p.admit(func() bool { errs = p.Pool.AddAll(txs); return slices.ContainsFunc(errs, isKnown) })
	return withProblem(problem, errs, len(txs))
}

// AddAllRaw is AddAll for transactions in their binary encoding.
func (p *Pool) AddAllRaw(raws [][]byte) (hashes []common.Hash, errs []error) {
	problem := p.admit(func() bool { hashes, errs = p.Pool.AddAllRaw(raws); return slices.ContainsFunc(errs, isKnown) })
	if problem != nil {
		hashes = make([]common.Hash, len(raws))
	}
	return hashes, withProblem(problem, errs, len(raws))
}

// withProblem returns one error for each of n transactions.
func withProblem(problem error, errs []error, n int) []error {
	if errs == nil {
		errs = make([]error, n)
	}
	for i, err := range errs {
		if problem != nil && isKnown(err) {
			// The pool has accepted this transaction, but the write to the log has failed. The
			// user must get that error, because a crash may lose the transaction.
			errs[i] = problem
		}
	}
	return errs
}

// Remove drops a transaction: see txpool.Pool.Remove. When Remove has returned nil, the transaction
// does not come back after a restart.
func (p *Pool) Remove(hash common.Hash) error {
	return p.change(func() error { return p.Pool.Remove(hash) })
}

// Reject drops a transaction that failed while a block was built: see txpool.Pool.Reject.
func (p *Pool) Reject(hash common.Hash, reason error) error {
	return p.change(func() error { return p.Pool.Reject(hash, reason) })
}

// change makes a change other than an addition, and writes it to the log.
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

// Applied removes the transactions of a block from the pool. Rollup.Apply must call
// it at its end, when txpool.State shows the block.
func (p *Pool) Applied(block txpool.Block) {
	if !p.recovered {
		return // Recovered reads all accounts later
	}
	defer p.refuseAfterPanic()
	p.logDisplaced(p.Reset(txpool.Head{Included: []txpool.Block{block}, BaseFee: p.baseFee()}))
}

// Undone is called by the host's Rollup.Undo. It calls the function undo, which must restore the
// state before the block, so that txpool.State shows that state. Then it puts the transactions of
// the block back into the pool. number is the number of the block, for messages to operators.
//
// If undo returns an error, it must have changed nothing, and Undone returns that error. After an
// earlier panic, Undone returns ErrPanic without calling undo.
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

// takeBack puts the transactions of undone blocks back into the pool.
func (p *Pool) takeBack() {
	head := txpool.Head{BaseFee: p.baseFee()}
	var records [][]byte
	for _, b := range slices.Backward(p.history.undone) {
		head.Reverted = append(head.Reverted, b.block)
		// This record confirms that the pool has the block's transactions again.
		records = append(records, returned(b.count))
		p.log.Warn("a block failed; its transactions are executed again", "block", b.number, "transactions", len(b.block.Transactions))
	}
	p.logDisplaced(p.Reset(head))
	p.history.undone = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	p.returned = append(p.returned, records...)
}

// TakeChanges implements builder.Operations. If a block was undone, the record
// which confirms that the pool has the block's transactions comes after the
// records of these transactions, because a crash may cut off the log in
// between.
//
// After a panic in Applied or Undone, TakeChanges panics too. The builder then
// stops, and no user gets an answer for a change that is not in the log.
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

// refuseAfterPanic makes the pool refuse all further changes after a panic.
func (p *Pool) refuseAfterPanic() {
	if r := recover(); r != nil {
		// The panic came after the rollup's state had changed. If the builder called Apply or
		// Undo again, the pool would see a wrong state and drop transactions. So all later
		// calls are refused.
		p.failed.Store(true)
		panic(r)
	}
}

// Owns reports whether a record of a rollup's checkpoint belongs to the pool.
// The rollup's other records must not begin with the byte 'P' or 'R'.
func Owns(record []byte) bool {
	return len(record) > 0 && (record[0] == recordPool || record[0] == recordReturned)
}

// Records returns the content of the pool for a checkpoint. The rollup may call it
// after Recovered.
func (p *Pool) Records() [][]byte {
	return append(framed(p.Pool.Records()), returned(p.history.count))
}

// ReplayChange implements builder.Operations. It also accepts the records of a checkpoint. The
// error wraps ErrRecord.
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

// Recovered implements builder.Operations. When it returns, the pool has all
// transactions of the log that are not in a block. If the pool cannot admit a
// transaction now, it holds the transaction aside.
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

// logDisplaced logs the transactions that left the pool or could not return to it.
func (p *Pool) logDisplaced(displaced []txpool.Displaced) {
	for _, d := range displaced {
		if d.Held {
			p.log.Warn("transaction held aside; the pool tries again", "tx", d.Tx.Hash(), "reason", d.Err)
		} else {
			p.log.Warn("transaction left the pool", "tx", d.Tx.Hash(), "reason", d.Err)
		}
	}
}
