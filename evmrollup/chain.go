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

// Block is an executed block of the rollup. It embeds go-ethereum's *types.Block, and
// adds the Receipts of the transactions.
type Block = ledger.Block

// Disk is an ordered key-value store in which a chain keeps its final blocks.
// Several goroutines use it at the same time. Package store has an implementation
// on Pebble.
type Disk interface {
	// Get returns the value of a key, or nil if the key has none. The caller may keep and change
	// the result.
	Get(key []byte) ([]byte, error)
	// Write stores all records or none of them. The records may become durable later, at
	// the latest during Sync, but always in the order in which they were written.
	Write(records []statedb.Record) error
	// Sync makes all records durable.
	Sync() error
	// Scan calls f for the keys from the first argument (inclusive) to the second
	// (exclusive), in order. It stops at the first error and returns it. The slice that f
	// receives is valid only during that call of f.
	Scan(from, to []byte, f func(key []byte) error) error
}

// Config is the configuration of a chain, for [New].
type Config struct {
	// ChainID is the chain ID, above 0.
	ChainID *big.Int
	// Genesis are the accounts of block 0.
	Genesis types.GenesisAlloc
	// GenesisTime is the time of block 0 in Unix seconds. 0 means the start of the JAM
	// common era.
	GenesisTime uint64
	// Rules are the rules in which this chain differs from Ethereum. The zero value means
	// Ethereum's rules.
	Rules Rules
	// MaxTxsPerBlock is the maximum number of transactions in a block, at least 1.
	MaxTxsPerBlock int
	// RetainStates is how many blocks before the final block keep their state, at least 1.
	// The state of block 0 is always kept.
	RetainStates int
	// KeepBlocks is the number of final blocks that the ledger keeps whole, with bodies,
	// receipts and index. It must be at least 256. 0 means that the ledger keeps all
	// blocks.
	KeepBlocks uint64
	// MaxPool is the maximum number of pending transactions in the pool. The pool may have as
	// many queued ones in addition. MaxPerSender is the maximum number of transactions from
	// one sender.
	MaxPool, MaxPerSender int
	// Ledger stores the final blocks, and States stores the states, so that both survive a
	// restart. Writes to them and to the builder's log must become durable in the order in
	// which they are made. If both fields are nil, the chain is in memory only.
	Ledger Disk
	States statedb.Disk
	// PoolMetrics and StateMetrics receive measurements of the pool and of the states.
	PoolMetrics  PoolMetrics
	StateMetrics jamq.Metrics
	// Logger receives messages for operators. Nil means that there are no messages.
	Logger *slog.Logger
}

// maxTxSize is the maximum size of a transaction in bytes. It is geth's value, which
// leaves room for a contract of the greatest allowed size.
const maxTxSize = 128 * 1024

// poolBytes returns the maximum size of all pending transactions in the pool, in bytes.
// The same limit applies to all queued transactions.
func (c *Config) poolBytes() uint64 { return max(uint64(c.MaxPool)*maxTxSize/8, maxTxSize) }

// Chain is an EVM rollup: its blocks, the states after them, and the pool of
// transactions. Package builder drives the chain through the interface that
// [Chain.Rollup] returns. All other methods are safe for concurrent use.
type Chain struct {
	cfg    Config
	log    *slog.Logger
	config *params.ChainConfig
	states *statedb.Store
	// genesis is a separate store for the state of block 0, in memory. The store states could
	// keep this state too, but it describes an old state by its differences from the newest
	// one, which grow with the chain.
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

// New returns a chain that begins at its genesis, or continues after the blocks in
// Config.Ledger. The chain accepts transactions only after a builder has recovered it
// from the builder's log.
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

// makeGenesis commits the state of block 0 and returns the block.
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

// commitGenesis stores the state of block 0 as canonical, and returns its root.
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

// priceBump is how much a transaction must raise both prices, in per mille, in order to
// replace another transaction. It is geth's value, on which wallets rely: MetaMask
// raises both prices by a tenth.
const priceBump = 100

func (c *Chain) makePool() (err error) {
	// The pool has no separate price floor. The base fee of the blocks is the market price,
	// from which wallets compute their prices. A floor in the pool would be a second price
	// that no wallet knows.
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

// poolState gives the pool the accounts as they are after the newest executed block.
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
