package txpool

import (
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/internal/fields"
)

// Config configures a [Pool]. Start from [DefaultConfig], or from [DefaultConfigEIP1559] for a
// rollup with a base fee.
//
// Prices are in wei per gas and include the base fee, except tips. Shares are in
// per mille. A number of 0 turns a rule off, and a nil function is not called,
// unless the comment of the field gives another meaning.
type Config struct {
	// ChainID is the chain id that transactions must be signed for. It must be
	// positive.
	ChainID *big.Int

	// The rules for a transaction alone.

	// BlockGasLimit is the gas limit of a block, at least 21,000. The default is
	// 30 million.
	BlockGasLimit uint64
	// MaxTxGas is the maximum gas limit of a transaction; BlockGasLimit applies as
	// well. 0 means that only BlockGasLimit applies. The default is 2^24
	// (EIP-7825).
	//
	// MaxTxGas should be well below BlockGasLimit, because a transaction starts
	// only if its gas limit fits into the rest of the block. A transaction that
	// requests a whole block would never start after a better one, and would keep
	// its place in the pool without ever paying.
	MaxTxGas uint64
	// MaxTxSize is the maximum size of a transaction's encoding, in bytes, from
	// 1 to 2^28. The default is 32 KiB.
	MaxTxSize uint64
	// Fork is the Ethereum fork whose gas rules the rollup has. The default is
	// Prague.
	Fork Fork
	// AcceptBlobs admits blob transactions (EIP-4844) without their sidecars.
	// AcceptUnprotected admits legacy transactions that can be replayed on any
	// chain. Both are false by default.
	AcceptBlobs, AcceptUnprotected bool
	// Precheck is an additional check by the rollup; Add returns its error. The
	// pool calls Precheck last, and only for transactions that it would otherwise
	// admit, so that an attacker pays as much for a call of an expensive Precheck
	// as for an admission. The pool calls Precheck without a lock and concurrently.
	// Nil means no check.
	Precheck func(*types.Transaction) error
	// Sender returns the sender of a transaction, for rollups whose signatures differ from
	// Ethereum's. Nil means that transactions have Ethereum's signatures.
	Sender func(*types.Transaction) (common.Address, error)
	// ExtraCost returns the amount that a transaction can cost its sender in
	// addition to gas and value, in wei, for example a data fee. Nil means 0.
	ExtraCost func(*types.Transaction) *uint256.Int

	// The caps, which limit how much strangers can put into the pool.

	// MaxPending is the maximum number of transactions that can run. MaxParked is the maximum
	// number of transactions that do not pay the floor or the base fee. MaxQueued is the maximum
	// number of transactions behind nonce gaps. Each is at least 1; the defaults are 1,000.
	//
	// A parked or queued transaction never displaces a pending one. A transaction that could run
	// once and cannot run now does not count against MaxParked and MaxQueued, so that no newcomer
	// pushes it out. A transaction that a session has locked counts against none of the three: the
	// host has chosen it for a block, and newcomers should find room while the block is built.
	MaxPending, MaxParked, MaxQueued int
	// MaxBytes is the maximum memory of the pending transactions, in bytes. The same limit applies
	// to the parked and to the queued ones. It is at least MaxTxSize. The default is 1,000 times 32
	// KiB.
	//
	// The memory of a transaction includes the pool's data about it, and is
	// accurate to within a quarter. A plain transfer takes about 1.1 kB (invariant
	// I15).
	MaxBytes uint64
	// MaxPerSender is the maximum number of transactions of one sender, including
	// locked ones. It is at least 1; the default is 16. It also limits how far ahead a
	// sender can go: a transaction's nonce may exceed the account's nonce by at most
	// four times MaxPerSender. Transactions that come back, for example from a failed
	// block, are exempt from all caps; see the package documentation.
	MaxPerSender int
	// MaxDelegated is the maximum number of transactions of a sender that is or may
	// become delegated (EIP-7702). It is at least 1. The default is 1, because another
	// party can spend the sender's balance and so invalidate all its transactions at
	// once.
	MaxDelegated int

	// The fees, in wei per gas.

	// MinGasPrice is the initial and the lowest floor. The default is 1 gwei. The
	// highest floor is 1,000 gwei, or 1,000 times MinGasPrice if that is more.
	MinGasPrice uint64
	// FloorWindow is the number of recent blocks whose median prices determine the
	// floor, at most 1,024. A block that is at most half full counts as a block at
	// MinGasPrice. The default is 20; 0 keeps the floor at MinGasPrice.
	FloorWindow int
	// SurgeSlope is how steeply the price for newcomers rises while the pool is nearly
	// full. Above an occupancy of 70 %, a newcomer must pay 1 + SurgeSlope·(occupancy −
	// 70 %) times the floor. The occupancy is the used share of MaxPending or of
	// MaxBytes, whichever is higher. SurgeSlope is in per mille, at most 10,000. The
	// default is 2,000.
	SurgeSlope uint64
	// PriceBump is how much a replacement must raise the fee cap and the tip of the
	// replaced transaction. It is in per mille, at most 10,000. The default is 125,
	// which means 12.5 %.
	PriceBump uint64
	// RoundBumpDown rounds the price that PriceBump demands down to a whole number of
	// wei. geth rounds down, and some wallets compute their replacements like geth. By
	// default the price is rounded up. In both cases a replacement pays at least 1 wei
	// more.
	RoundBumpDown bool
	// Score returns how valuable a transaction is to the builder. Among the next
	// transactions of all senders, a session takes the one with the highest score and,
	// among equal scores, the one that arrived first. The transactions of one sender
	// always come in nonce order. Score does not affect eviction, which depends only on
	// the effective tip.
	//
	// The result must depend on the argument only. Sessions call Score with the pool's
	// lock held, and the readers of a Snapshot call it without the lock and concurrently.
	//
	// Nil means the effective tip. The pool then keeps its transactions sorted, so a
	// builder that takes the best few visits only few. With Score, each session must sort
	// the senders when it begins.
	Score func(Candidate) int64

	// Lifetime is how long a transaction may stay in the pool before the pool drops it.
	// It must be positive; the default is one hour.
	//
	// An expired transaction stays if later transactions of its sender depend on it and
	// stay. It may also stay for up to a sixteenth of Lifetime longer, because the pool
	// drops expired transactions only in some calls of Add, Build and Reset. See
	// [Pool.CleanupExpired].
	Lifetime time.Duration
	// QuarantineTime is how long the pool refuses a transaction that failed while a block was
	// built, or that was replaced. 0 means that the pool does not refuse such transactions. The
	// default is ten minutes.
	QuarantineTime time.Duration

	// The host.

	// Now returns the current time. Nil means time.Now. If the times have a monotonic reading, the
	// pool measures ages by that reading, so that no transaction expires because the machine's
	// clock was set.
	Now func() time.Time
	// Observe is called with each event, in order and without the pool's lock. Nil means
	// that events are discarded. Observe may call methods of the pool. It must return
	// soon, because later events wait in memory, and it must not wait for another
	// goroutine that calls the pool.
	//
	// A host whose event readers may block should pass the events to them through a
	// channel, and drop events while the channel is full.
	Observe func(Event)
	// KeepChanges makes the pool record each change until [Pool.TakeChanges] returns the
	// records, which Pool.Restore can use to recover the pool after a restart. The
	// default is false: a restart then loses all transactions.
	KeepChanges bool
	// Logger receives messages about problems that an operator should check, for example that an
	// account cannot be read. Nil discards the messages.
	Logger *slog.Logger

	accepted bool // the rules are for transactions that the pool accepted before
}

// Fork selects the Ethereum fork whose gas rules the rollup uses.
type Fork uint8

const (
	// Prague has all gas rules that this package knows, including those of Shanghai. In addition,
	// the data of a transaction costs a minimum of gas (EIP-7623).
	Prague Fork = iota
	// Shanghai has no minimum for the cost of data. Init code costs gas for each
	// word, and is limited to 49,152 bytes (EIP-3860).
	Shanghai
	// London has neither the cost nor the limit for init code.
	London
)

// DefaultConfig returns the default configuration for a chain: blocks of 30
// million gas, 1,000 transactions each pending, parked and queued, 16
// transactions per sender, and a floor of at least 1 gwei. Each field documents
// its default.
func DefaultConfig(chainID *big.Int) Config {
	const (
		count = 1000
		size  = 32 * 1024
	)
	return Config{
		ChainID:        chainID,
		BlockGasLimit:  30_000_000,
		MaxTxGas:       1 << 24,
		MaxTxSize:      size,
		MaxPending:     count,
		MaxParked:      count,
		MaxQueued:      count,
		MaxBytes:       count * size,
		MaxPerSender:   16,
		MaxDelegated:   1,
		MinGasPrice:    gwei,
		FloorWindow:    20,
		SurgeSlope:     2000,
		PriceBump:      125,
		Lifetime:       time.Hour,
		QuarantineTime: 10 * time.Minute,
	}
}

// DefaultConfigEIP1559 returns the default configuration for a chain with a base
// fee (EIP-1559), which rises and falls with the demand. The pool's floor stays at
// 1 wei and newcomers pay no surge, because two prices that both follow the demand
// would push each other up.
func DefaultConfigEIP1559(chainID *big.Int) Config {
	c := DefaultConfig(chainID)
	c.MinGasPrice, c.FloorWindow, c.SurgeSlope = 1, 0, 0
	return c
}

// Bounds that prevent overflow.
const (
	maxTxSize      = 1 << 28
	maxFloorWindow = 1024
	maxShare       = 10_000 // in per mille
)

// Values that no host has a reason to change.
const (
	// MaxAuthorizations is the maximum number of authorizations (EIP-7702) in a
	// transaction. The pool recovers a signature for each.
	MaxAuthorizations = 16
	// distancePerSender limits how far the nonce of a transaction may be ahead of its
	// sender's account, in multiples of Config.MaxPerSender. It is more than 1, so that a
	// sender that has already sent transactions to another node can continue with this
	// pool.
	distancePerSender = 4
	// highestFloor is the maximum of the floor: this many gwei or, if that is more, this
	// many times Config.MinGasPrice.
	highestFloor = 1000
	// floorWeight is the weight of the newest block's median price in the exponential
	// average that determines the floor, in per mille. With this weight, the average
	// follows two thirds of a change within five blocks.
	floorWeight = 200
	// surgeThreshold is the occupancy above which newcomers pay more, in per mille.
	surgeThreshold = 700
	// maxSizeGrowth is how much longer the encoding of a replacement may be, in per mille
	// of the replaced one. maxReplacements is how often a nonce may be replaced within
	// replacementWindow. Both limit how many bytes a sender can make the network carry for
	// the fee of one transaction.
	maxSizeGrowth     = 250
	maxReplacements   = 10
	replacementWindow = time.Minute
	// departureTime is how long Pool.Departure remembers why a transaction left the
	// pool. maxDepartures is how many transactions it remembers; each takes up to
	// 500 bytes of memory.
	departureTime = 24 * time.Hour
	maxDepartures = 64 * 1024
	// maxQuarantined is how many transactions the pool remembers in each of three lists: those that
	// failed while a block was built, those that were replaced, and private ones that were included
	// in a block.
	maxQuarantined = 16 * 1024
	// accountCache is how many accounts without transactions in the pool are cached
	// until the next Reset. The cache saves reading the host's state again for each
	// of many refused transactions.
	accountCache = 4096
)

// MaxNonceDistance returns how far the nonce of a transaction may be ahead of the nonce
// of its sender's account: four times MaxPerSender. For a higher nonce, Add returns
// ErrNonceTooHigh.
func (c *Config) MaxNonceDistance() uint64 { return distancePerSender * uint64(c.MaxPerSender) }

const gwei = 1_000_000_000

// Validate checks the ranges of all fields. If some are out of range, it returns an error that
// wraps [ErrInvalidConfig] and names each of them with its value and its range.
func (c *Config) Validate() error {
	var wrong fields.Errors
	wrong.Want(c.ChainID != nil && c.ChainID.Sign() > 0, "ChainID", c.ChainID, "positive")
	wrong.Want(c.BlockGasLimit >= txGas, "BlockGasLimit", c.BlockGasLimit, fmt.Sprintf("at least %d", txGas))
	fields.Range(&wrong, "MaxTxSize", c.MaxTxSize, 1, maxTxSize)
	wrong.Want(c.MaxBytes >= c.MaxTxSize, "MaxBytes", c.MaxBytes, fmt.Sprintf("at least MaxTxSize %d", c.MaxTxSize))
	fields.Range(&wrong, "Fork", c.Fork, Prague, London)
	fields.Range(&wrong, "SurgeSlope", c.SurgeSlope, 0, maxShare)
	fields.Range(&wrong, "PriceBump", c.PriceBump, 0, maxShare)
	fields.Range(&wrong, "MaxPending", c.MaxPending, 1, math.MaxInt32)
	fields.Range(&wrong, "MaxParked", c.MaxParked, 1, math.MaxInt32)
	fields.Range(&wrong, "MaxQueued", c.MaxQueued, 1, math.MaxInt32)
	fields.Range(&wrong, "MaxPerSender", c.MaxPerSender, 1, math.MaxInt32)
	fields.Range(&wrong, "MaxDelegated", c.MaxDelegated, 1, math.MaxInt32)
	fields.Range(&wrong, "FloorWindow", c.FloorWindow, 0, maxFloorWindow)
	fields.Positive(&wrong, "Lifetime", c.Lifetime)
	wrong.Want(c.QuarantineTime >= 0, "QuarantineTime", c.QuarantineTime, "at least 0")
	return wrong.Wrap(ErrInvalidConfig)
}

// lenient returns the rules for transactions that were accepted before.
func (c *Config) lenient() Config {
	l := *c
	// These limits may have been higher when the transaction was accepted. An accepted
	// transaction must not be lost, so they do not apply to it.
	l.MinGasPrice, l.MaxTxSize, l.MaxTxGas = 0, maxTxSize, 0
	l.accepted = true
	return l
}

// withDefaults replaces nil and 0 by the defaults.
func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
