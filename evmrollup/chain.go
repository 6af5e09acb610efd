package evmrollup

import (
	"fmt"
	"log/slog"
	"math/big"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder/mempool"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/evm"
	"github.com/jamq/jamq/txpool"
)

// Block is an executed block: a *types.Block of go-ethereum, which is embedded, and its Receipts.
type Block = ledger.Block

// Disk is an ordered key-value store for the final blocks. It is used by several goroutines
// concurrently. Package store has one in Pebble.
type Disk interface {
	// Get returns a value, nil if there is none. It belongs to the caller.
	Get(key []byte) ([]byte, error)
	// Write writes all records or none. They need not be durable before Sync, but must
	// become durable in the order of the calls.
	Write(records []statedb.Record) error
	// Sync makes all records durable.
	Sync() error
	// Scan calls f with the keys from one to before another, in order, and stops at the
	// first error. The slice is valid only during the call.
	Scan(from, to []byte, f func(key []byte) error) error
}

// Config configures a chain.
type Config struct {
	// ChainID is the chain ID, above 0.
	ChainID *big.Int
	// Genesis are the accounts of block 0.
	Genesis types.GenesisAlloc
	// GenesisTime is the time of block 0 in Unix seconds. 0 means the beginning of JAM's common
	// era.
	GenesisTime uint64
	// Rules change how the chain differs from Ethereum. The zero value is Ethereum.
	Rules Rules
	// MaxTxsPerBlock is the maximum number of transactions in a block, at least 1.
	MaxTxsPerBlock int
	// RetainStates is the number of blocks before the final one whose state is kept, at
	// least 1. The state of block 0 is always kept.
	RetainStates int
	// KeepBlocks is the number of final blocks of which the ledger keeps bodies, receipts
	// and index, at least 256. 0 means all.
	KeepBlocks uint64
	// MaxPool is the maximum number of pending, and of queued, transactions in the
	// pool. MaxPerSender is that of one sender.
	MaxPool, MaxPerSender int
	// Ledger keeps the final blocks across restarts, and States the states. Their writes
	// become durable in one order, with those of the builder's log. Nil means memory, for
	// both.
	Ledger Disk
	States statedb.Disk
	// PoolMetrics and StateMetrics are the hooks for metrics.
	PoolMetrics  PoolMetrics
	StateMetrics jamq.Metrics
	// Logger receives messages for operators. Nil is silent.
	Logger *slog.Logger
}

// maxTxSize is the maximum size of a transaction in bytes. It is geth's, because
// contracts of full size must fit.
const maxTxSize = 128 * 1024

// poolBytes returns the maximum size of the pending, and of the queued,
// transactions in the pool.
func (c *Config) poolBytes() uint64 { return max(uint64(c.MaxPool)*maxTxSize/8, maxTxSize) }

// Chain is an EVM rollup: its blocks, their states, and the transactions that wait.
// [Chain.Rollup] returns its side for package builder. All other methods are safe for
// concurrent use.
type Chain struct {
	cfg    Config
	log    *slog.Logger
	config *params.ChainConfig
	states *statedb.Store
	// genesis has the state of block 0 in memory. A pin in states would keep it too, and
	// make each write set that leads to it longer with the chain.
	genesis *statedb.Store
	ledger  *ledger.Ledger
	pool    *mempool.Pool
	limits  Limits
	signer  types.Signer

	replaced      atomic.Uint64 // executed blocks that were undone
	production    production
	edits         edits
	impersonation impersonation
	pending       pending
}

// New returns a chain at its genesis, or with the blocks of Config.Ledger. It takes
// transactions when a builder has recovered it.
func New(cfg Config) (*Chain, error) {
	c := &Chain{cfg: cfg, log: cfg.Logger, config: evm.ChainConfig(cfg.ChainID)}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.signer = newSigner(types.LatestSigner(c.config), cfg.Ledger == nil)
	states := statedb.Config{Retention: cfg.RetainStates, Disk: cfg.States, Metrics: cfg.StateMetrics}
	var err error
	if c.states, err = statedb.Open(states); err != nil {
		return nil, err
	}
	genesis, err := c.makeGenesis()
	if err != nil {
		return nil, err
	}
	if cfg.Ledger == nil {
		c.ledger = ledger.New(genesis)
	} else if c.ledger, err = ledger.Open(cfg.Ledger, c.config, genesis, cfg.KeepBlocks, c.log); err != nil {
		return nil, err
	}
	return c, c.makePool()
}

// makeGenesis seals block 0.
func (c *Chain) makeGenesis() (_ *Block, err error) {
	if c.genesis, err = statedb.Open(statedb.Config{}); err != nil {
		return nil, err
	}
	header := c.newHeader()
	if header.Root, err = commitGenesis(c.genesis, c.cfg.Genesis); err != nil {
		return nil, err
	}
	if c.states.Canonical() == statedb.EmptyRoot {
		if _, err := commitGenesis(c.states, c.cfg.Genesis); err != nil {
			return nil, err
		}
	}
	header.Number = new(big.Int)
	header.Extra = fmt.Appendf(nil, "jamq %v", c.cfg.ChainID) // makes genesis hashes differ
	if header.Time = c.cfg.GenesisTime; header.Time == 0 {
		header.Time = uint64(jamq.CommonEra().Unix())
	}
	header.BaseFee = big.NewInt(params.GWei)
	genesis := types.NewBlock(header, &types.Body{Withdrawals: []*types.Withdrawal{}}, nil, trie.NewStackTrie(nil))
	return &Block{Block: genesis}, nil
}

// commitGenesis makes the state of block 0 the canonical one, and returns its root.
func commitGenesis(states *statedb.Store, alloc types.GenesisAlloc) (root common.Hash, err error) {
	view, err := states.View(statedb.EmptyRoot)
	if err != nil {
		return root, err
	}
	if err := evm.Genesis(view, alloc); err != nil {
		return root, err
	}
	if root, err = view.Commit(); err != nil {
		return root, err
	}
	return root, states.SetCanonical(root)
}

// priceBump is the least increase of the prices in a replacement, in per mille. It is geth's,
// which wallets know: MetaMask raises both prices by a tenth.
const priceBump = 100

func (c *Chain) makePool() (err error) {
	// The base fee of the blocks is the market. A floor in the pool would be a
	// second price that no wallet knows, because wallets compute their price
	// from the base fee.
	cfg := txpool.DefaultConfigEIP1559(c.cfg.ChainID)
	cfg.BlockGasLimit = c.cfg.Rules.gasLimit()
	cfg.MaxPending, cfg.MaxParked, cfg.MaxQueued, cfg.MaxPerSender = c.cfg.MaxPool, c.cfg.MaxPool, c.cfg.MaxPool, c.cfg.MaxPerSender
	cfg.PriceBump, cfg.RoundBumpDown = priceBump, true
	cfg.MaxTxSize = maxTxSize
	cfg.MaxBytes = c.cfg.poolBytes()
	if c.cfg.Ledger == nil {
		cfg.Sender = c.sender
		cfg.QuarantineTime = 0 // an edit may give back one that was replaced
	}
	cfg.Logger, cfg.Observe = c.log, c.poolEvent
	c.limits = limitsOf(&cfg)
	c.pool, err = mempool.New(cfg, poolState{c}, func() *big.Int { return c.nextHeader(c.ledger.Head()).BaseFee })
	return err
}

// poolState shows the accounts after the newest executed block to the pool.
type poolState struct{ *Chain }

// Account implements txpool.State.
func (s poolState) Account(addr common.Address) (txpool.Account, error) {
	view, err := s.states.View(s.ledger.Head().Root())
	if err != nil {
		return txpool.Account{}, err
	}
	account := view.Account(addr)
	_, delegated := types.ParseDelegation(view.Code(account.CodeHash))
	return txpool.Account{Nonce: account.Nonce, Balance: *account.Balance, Delegated: delegated}, nil
}
