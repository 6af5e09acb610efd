package txpool

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"golang.org/x/sync/errgroup"
)

// Pool is the mempool. It is safe for concurrent use.
type Pool struct {
	cfg    Config
	state  State
	signer types.Signer

	mu     sync.Mutex
	core   *core
	leases map[uint64]*Lease
	lastID uint64
	// generation counts what makes account states that were read before stale.
	generation uint64

	delivering sync.Mutex
}

// New returns an empty pool. The error wraps [ErrInvalidConfig].
func New(cfg Config, state State) (*Pool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if state == nil {
		return nil, fmt.Errorf("%w: State must be given", ErrInvalidConfig)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	p := &Pool{cfg: cfg, state: state, signer: types.NewPragueSigner(cfg.ChainID), leases: make(map[uint64]*Lease)}
	p.core = newCore(&p.cfg)
	return p, nil
}

// change runs f under the lock, and delivers the events afterwards. What f promoted may be more than fits.
func (p *Pool) change(f func(*core) error) error {
	p.mu.Lock()
	err := f(p.core)
	p.core.shrink(nil)
	p.mu.Unlock()
	p.deliver()
	return err
}

// deliver hands events to the observer, in order, one caller at a time. Who finds another at it leaves its events to that one.
func (p *Pool) deliver() {
	for p.delivering.TryLock() {
		events := p.takeEvents()
		for _, e := range events {
			if p.cfg.Observe != nil {
				p.cfg.Observe(e)
			}
		}
		p.delivering.Unlock()
		if len(events) == 0 {
			return
		}
	}
}

func (p *Pool) takeEvents() []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	events := p.core.events
	p.core.events = nil
	return events
}

// Add admits a transaction. A nil error means that it is stored; whatever happens to it then is an event. Errors wrap one of
// the package's and change nothing.
func (p *Pool) Add(tx *types.Transaction) error {
	e, err := p.cfg.inspect(p.signer, tx, p.cfg.Now())
	if err != nil {
		return err
	}
	return p.admit(e)
}

// AddRaw is Add for the binary encoding of a transaction (EIP-2718). It returns the transaction's hash if it was admitted. What does not
// decode gives go-ethereum's error.
func (p *Pool) AddRaw(raw []byte) (common.Hash, error) {
	if uint64(len(raw)) > p.cfg.MaxTxSize {
		return common.Hash{}, fmt.Errorf("%w: transaction size %d, limit %d", ErrOversized, len(raw), p.cfg.MaxTxSize)
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return common.Hash{}, err
	}
	if err := p.Add(tx); err != nil {
		return common.Hash{}, err
	}
	return tx.Hash(), nil
}

// AddAll adds transactions one after another, with their signatures recovered on all processors. It returns an error, or nil,
// for each.
func (p *Pool) AddAll(txs []*types.Transaction) []error {
	errs := make([]error, len(txs))
	entries := make([]*entry, len(txs))
	now := p.cfg.Now()
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, tx := range txs {
		group.Go(func() error {
			entries[i], errs[i] = p.cfg.inspect(p.signer, tx, now)
			return nil
		})
	}
	_ = group.Wait() // its functions keep their errors themselves
	for i, e := range entries {
		if e != nil {
			errs[i] = p.admit(e)
		}
	}
	return errs
}

// admit reads the sender's account outside the lock, and tries again if the state moved meanwhile.
func (p *Pool) admit(e *entry) error {
	for {
		p.mu.Lock()
		generation := p.generation
		p.mu.Unlock()
		nonce, balance, err := p.account(e.from)
		if err != nil {
			return err
		}
		stale := false
		err = p.change(func(c *core) error {
			if stale = p.generation != generation; stale {
				return nil
			}
			return c.add(e, nonce, balance)
		})
		if !stale {
			return err
		}
	}
}

func (p *Pool) account(addr common.Address) (uint64, *uint256.Int, error) {
	nonce, balance, err := p.state.Account(addr)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %s: %w", ErrState, addr, err)
	}
	if balance == nil {
		balance = new(uint256.Int)
	}
	return nonce, balance, nil
}

// Drain leases the best transactions that fit into a budget, in the order in which they should run: equal pools and budgets give
// equal drains. The lease may be empty; it must be committed or released all the same.
func (p *Pool) Drain(budget Budget) *Lease {
	l := &Lease{pool: p, expires: p.cfg.Now().Add(p.cfg.LeaseLifetime)}
	_ = p.change(func(c *core) error {
		p.lastID++
		l.id = p.lastID
		l.txs, l.skipped = c.drain(budget, l.id)
		p.leases[l.id] = l
		return nil
	})
	return l
}

// Reset reads the accounts of all senders anew, and takes back the transactions of blocks that were thrown away. It is for
// when executed blocks went away: nonces that were committed count no more unless the host's state shows them. It
// returns an error, or nil, for each transaction that was to be taken back. If the host's state cannot be read, the
// account in question stays as it was and is read again with its next transaction.
func (p *Pool) Reset(reinject []*types.Transaction) []error {
	p.mu.Lock()
	p.generation++
	senders := slices.SortedFunc(maps.Keys(p.core.accounts), common.Address.Cmp)
	p.mu.Unlock()
	for _, addr := range senders {
		nonce, balance, err := p.account(addr)
		if err != nil {
			continue
		}
		_ = p.change(func(c *core) error {
			if a := c.accounts[addr]; a != nil {
				c.refresh(a, nonce, balance)
			}
			return nil
		})
	}
	return p.AddAll(reinject)
}

// Refresh reads the accounts of some senders anew: those that a new block touched.
func (p *Pool) Refresh(senders []common.Address) {
	for _, addr := range senders {
		nonce, balance, err := p.account(addr)
		if err != nil {
			continue
		}
		_ = p.change(func(c *core) error {
			if a := c.accounts[addr]; a != nil {
				c.refresh(a, max(nonce, a.nonce), balance)
			}
			return nil
		})
	}
}

// Remove drops a transaction. One that is not there is no error; one in a bundle wraps ErrInBundle.
func (p *Pool) Remove(hash common.Hash, reason error) error {
	return p.change(func(c *core) error { return c.remove(hash, reason) })
}

// CleanupExpired releases leases and drops transactions that are over their time, and returns how many transactions it dropped.
func (p *Pool) CleanupExpired() int {
	now := p.cfg.Now()
	p.mu.Lock()
	var overdue []*Lease
	for _, l := range p.leases {
		if !now.Before(l.expires) {
			overdue = append(overdue, l)
		}
	}
	p.mu.Unlock()
	slices.SortFunc(overdue, func(a, b *Lease) int { return int(a.id) - int(b.id) })
	for _, l := range overdue {
		_ = l.Release() // closed meanwhile is fine
	}
	dropped := 0
	_ = p.change(func(c *core) error {
		var old []*entry
		for _, e := range c.all {
			if e.lease == 0 && now.Sub(e.at) >= p.cfg.Lifetime {
				old = append(old, e)
			}
		}
		slices.SortFunc(old, func(a, b *entry) int { return int(a.seq) - int(b.seq) })
		for _, e := range old {
			if c.remove(e.hash, ErrExpired) == nil {
				dropped++
			}
		}
		return nil
	})
	return dropped
}
