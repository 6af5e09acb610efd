package mempool

import (
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
	// ErrJournal is returned by [New] if the configuration has a journal.
	ErrJournal = errors.New("mempool: Config.Journal is set, want nil: the builder's log is the journal")
)

// Pool is a txpool.Pool whose changes are records in a builder's log. It implements
// builder.Recorder. Create one with [New].
type Pool struct {
	*txpool.Pool
	log     *slog.Logger
	baseFee func() *big.Int
	sender  func(*types.Transaction) (common.Address, error) // of the host; nil: Ethereum's
	record  atomic.Pointer[func(records ...[]byte) error]    // nil before Recovered

	// moving is held while the transactions of an undone block go from the state to the
	// pool. Additions wait at the gate meanwhile, and readers for the lock.
	moving sync.RWMutex
	gate   gate

	// senders are those of the block that is undone, nil if there is none.
	senders atomic.Pointer[map[common.Hash]common.Address]

	// The goroutine of the builder owns these.
	history   history
	recovered bool
	session   *txpool.Session // of the last proposal, or nil
}

// New returns an empty pool, which takes transactions after [Pool.Recovered]. state must
// show the accounts after the newest block that the rollup has applied. baseFee returns
// the base fee of the next block, in wei per gas; nil means a rollup without one.
//
// A panic of state, baseFee, cfg.Observe, cfg.Metrics, cfg.Score or cfg.Now is logged and
// costs that call. A panic of cfg.Sender, cfg.ExtraCost, cfg.DASize or cfg.Precheck comes out
// of Add, which has then changed nothing; a transaction that returns to the pool is held aside
// instead. If cfg.Sender fails for a block that is undone, Undone fails before anything has
// changed. cfg.Logger also gets the transactions that do not stay in the pool or do not return
// to it. cfg.Observe must not call Add and its variants, because they wait while an undone
// block returns. The error is ErrJournal, or that of txpool.New.
func New(cfg txpool.Config, state txpool.State, baseFee func() *big.Int) (*Pool, error) {
	if cfg.Journal != nil {
		return nil, ErrJournal
	}
	p := &Pool{log: cfg.Logger, gate: newGate()}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.baseFee = func() (fee *big.Int) {
		if baseFee != nil {
			_ = p.guard("baseFee", func() { fee = baseFee() })
		}
		return fee
	}
	p.guardHooks(&cfg)
	cfg.Journal = toLog{p}
	var err error
	p.Pool, err = txpool.New(cfg, guarded{state, p})
	return p, err
}

// toLog is the journal of the embedded pool.
type toLog struct{ *Pool }

// Append implements txpool.Journal.
func (l toLog) Append(records ...[]byte) error { return l.append(framed(records)...) }

// append appends records to the builder's log.
func (p *Pool) append(records ...[]byte) error {
	record := p.record.Load()
	if record == nil {
		return ErrNotRecovered
	}
	return (*record)(records...)
}

// Hold makes blocks that are undone wait until release is called, so that the calls in
// between see a transaction either in a block or in the pool. They must not be Add or one of
// its variants, which wait for an undone block.
func (p *Pool) Hold() (release func()) {
	p.moving.RLock()
	return p.moving.RUnlock
}

// Add adds a transaction. It is in the builder's log when Add returns nil. The errors are
// those of txpool.Pool.Add, as for all variants of Add.
func (p *Pool) Add(tx *types.Transaction) error {
	defer p.gate.pass()()
	return p.Pool.Add(tx)
}

// AddPrivate is Add for a transaction that is not shown to others.
func (p *Pool) AddPrivate(tx *types.Transaction) error {
	defer p.gate.pass()()
	return p.Pool.AddPrivate(tx)
}

// AddRaw is Add for the binary encoding of a transaction.
func (p *Pool) AddRaw(raw []byte) (common.Hash, error) {
	defer p.gate.pass()()
	return p.Pool.AddRaw(raw)
}

// AddAll adds transactions, with an error for each.
func (p *Pool) AddAll(txs []*types.Transaction) []error {
	defer p.gate.pass()()
	return p.Pool.AddAll(txs)
}

// AddAllRaw is AddAll for binary encodings.
func (p *Pool) AddAllRaw(raws [][]byte) ([]common.Hash, []error) {
	defer p.gate.pass()()
	return p.Pool.AddAllRaw(raws)
}

// Build begins the session of a proposal: see txpool.Pool.Build. It abandons the last
// proposal. The host neither commits nor cancels the session.
func (p *Pool) Build(ctx context.Context, budget txpool.Budget) *txpool.Session {
	p.abandon()
	p.session = p.Pool.Build(ctx, budget)
	return p.session
}

// abandon lets the transactions of the last proposal wait again.
func (p *Pool) abandon() {
	if p.session != nil {
		_ = p.session.Cancel() // fails if the lease has expired
		p.session = nil
	}
}

// Applied removes the transactions of a block. Rollup.Apply calls it last, when
// txpool.State shows the block.
func (p *Pool) Applied(block txpool.Block) {
	if !p.recovered {
		return // Recovered reads the accounts
	}
	p.logDisplaced(p.Reset(txpool.Head{Included: []txpool.Block{block}, BaseFee: p.baseFee()}))
	p.abandon()
}

// Undone lets the transactions of a block wait again. Rollup.Undo calls it. The number is
// for operators. undo restores the state before the block, so that txpool.State shows it. The
// error is that of cfg.Sender or of undo, which must then have changed nothing, or that of the
// log, after which the builder stops. If Undone panics after undo has returned nil, the next
// call, which the builder makes for the same block, does not call undo again.
func (p *Pool) Undone(number uint64, block txpool.Block, undo func() error) error {
	if err := p.findSenders(block); err != nil {
		return err
	}
	defer p.senders.Store(nil)
	p.abandon()
	defer p.gate.close(p.log)()
	p.moving.Lock()
	defer p.moving.Unlock()
	if interrupted := p.recovered && len(p.history.undone) > 0; !interrupted {
		if err := undo(); err != nil {
			return err
		}
		p.history.undo(number, block)
	}
	if !p.recovered {
		return nil
	}
	return p.takeBack()
}

// takeBack lets the transactions of undone blocks wait again, and records that the pool has
// them.
func (p *Pool) takeBack() error {
	blocks := p.history.undone
	head := txpool.Head{BaseFee: p.baseFee()}
	var records [][]byte
	for _, b := range slices.Backward(blocks) {
		head.Reverted = append(head.Reverted, b.block)
		records = append(records, returned(b.count))
		p.log.Warn("a block failed; its transactions are executed again", "block", b.number, "transactions", len(b.block.Transactions))
	}
	p.logDisplaced(p.Reset(head))
	p.history.undone = nil // a panic before has left them for the next call
	if err := p.Flush(); err != nil || len(records) == 0 {
		return err
	}
	return p.append(records...)
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

// Replay implements builder.Recorder. It also takes the records of a checkpoint. The error
// wraps ErrRecord.
func (p *Pool) Replay(_ context.Context, record []byte) error {
	if p.recovered {
		return fmt.Errorf("%w: it comes after Recovered", ErrRecord)
	}
	return p.history.read(record)
}

// Recovered implements builder.Recorder. The pool then has all transactions of the log
// that are in no block; it holds those aside that it cannot admit now.
func (p *Pool) Recovered(_ context.Context, record func(records ...[]byte) error) error {
	if p.recovered {
		return fmt.Errorf("%w: Recovered is called twice", ErrRecord)
	}
	p.record.Store(&record)
	p.recovered = true
	restored, err := p.Restore(p.history.replay)
	if err != nil {
		return err
	}
	p.history.records = nil
	p.logDisplaced(restored.Displaced)
	if err := p.takeBack(); err != nil {
		return err
	}
	for _, lease := range p.Leases() { // of sessions that the host has sealed
		if err := lease.Release(); err != nil {
			return err
		}
	}
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
