package mempool

import (
	"fmt"
	"math"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq/txpool"
)

// guarded is the host's state. Apply and Undo of the rollup have changed it when the pool
// reads it, and must not fail any more: a panic becomes an error, and the pool reads again
// later.
type guarded struct {
	txpool.State
	pool *Pool
}

// Account implements txpool.State.
func (g guarded) Account(address common.Address) (account txpool.Account, err error) {
	if problem := g.pool.guard("State.Account", func() { account, err = g.State.Account(address) }); problem != nil {
		return txpool.Account{}, problem
	}
	return account, err
}

// guard calls the host. It logs a panic, and returns it as an error.
func (p *Pool) guard(name string, call func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("mempool: %s panicked: %v", name, r)
			p.log.Error("a function of the host panicked", "function", name, "panic", r)
		}
	}()
	call()
	return nil
}

// guardHooks wraps the functions of the host that the pool calls when Apply and Undo of the
// rollup have changed the state, and that cannot return an error.
func (p *Pool) guardHooks(cfg *txpool.Config) {
	if observe := cfg.Observe; observe != nil {
		cfg.Observe = func(e txpool.Event) { _ = p.guard("Config.Observe", func() { observe(e) }) }
	}
	if count := cfg.Metrics.Count; count != nil {
		cfg.Metrics.Count = func(c txpool.Counter, reason string) {
			_ = p.guard("Config.Metrics.Count", func() { count(c, reason) })
		}
	}
	if observe := cfg.Metrics.Observe; observe != nil {
		cfg.Metrics.Observe = func(h txpool.Histogram, value float64) {
			_ = p.guard("Config.Metrics.Observe", func() { observe(h, value) })
		}
	}
	if score := cfg.Score; score != nil {
		cfg.Score = func(c txpool.Candidate) (n int64) {
			if p.guard("Config.Score", func() { n = score(c) }) != nil {
				return math.MinInt64 // the last one
			}
			return n
		}
	}
	if now := cfg.Now; now != nil {
		cfg.Now = func() (t time.Time) {
			if p.guard("Config.Now", func() { t = now() }) != nil {
				return time.Now()
			}
			return t
		}
	}
	if sender := cfg.Sender; sender != nil {
		p.sender = sender
		cfg.Sender = func(tx *types.Transaction) (common.Address, error) {
			if known := p.senders.Load(); known != nil {
				if from, ok := (*known)[tx.Hash()]; ok {
					return from, nil
				}
			}
			return sender(tx)
		}
	}
}

// findSenders calls the host for the senders of a block that will be undone, so that the pool
// needs no further call for them when the state has changed. A call that panics is repeated
// once; then Undone fails, and the builder repeats it later.
func (p *Pool) findSenders(block txpool.Block) (err error) {
	if p.sender == nil {
		return nil
	}
	all := make(map[common.Hash]common.Address, len(block.Transactions))
	for _, tx := range block.Transactions {
		var from common.Address
		call := func() { from, err = p.sender(tx) }
		if p.guard("Config.Sender", call) != nil {
			if problem := p.guard("Config.Sender", call); problem != nil {
				return problem
			}
		}
		if err != nil {
			return fmt.Errorf("mempool: the sender of %s, in a block that is undone: %w", tx.Hash(), err)
		}
		all[tx.Hash()] = from
	}
	p.senders.Store(&all)
	return nil
}
