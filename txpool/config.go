package txpool

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Config configures a [Pool]. Start from [DefaultConfig], or from
// [DefaultConfigEIP1559] for a rollup with a base fee.
//
// Prices are in wei per gas and include the base fee, except tips. Shares are
// in per mille. 0 turns a rule off, and nil a hook. The comment of a field names
// its default if 0 or nil has another meaning.
type Config struct {
	// ChainID is the chain id that transactions must be signed for. It must be
	// positive.
	ChainID *big.Int

	// BlockGasLimit is the gas limit of a block, at least 21,000. The default is
	// 30 million.
	BlockGasLimit uint64
	// MaxTxGas is the maximum gas limit of a transaction. The block's bounds it
	// too. 0 means no other bound. The default is 2^24 (EIP-7825). It should be
	// well below BlockGasLimit: a transaction starts only if its limit fits into
	// the rest of the block, so one that requests a whole block never starts
	// behind a better one, and keeps its place in the pool without paying.
	MaxTxGas uint64
	// MaxInitCodeSize is the maximum size of the init code of a contract
	// creation, in bytes. 0 means no maximum. The default is 49,152 (EIP-3860).
	// InitCodeGas charges gas for each word of it (EIP-3860), and FloorDataGas a
	// minimum for the data of any transaction (EIP-7623). Both are true by
	// default. A rollup with an earlier fork's rules turns them off.
	MaxInitCodeSize           int
	InitCodeGas, FloorDataGas bool
	// MaxTxSize is the maximum size of a transaction's encoding, in bytes, from
	// 1 to 2^28. The default is 32 KiB.
	MaxTxSize uint64
	// MaxAccessList is the maximum number of addresses and keys in an access
	// list, and MaxAuthorizations that of authorizations (EIP-7702) in a
	// transaction. Both are at least 1. The defaults are 512 and 16.
	MaxAccessList, MaxAuthorizations int
	// AcceptBlobs admits blob transactions (EIP-4844) without their sidecars.
	// AcceptUnprotected admits legacy transactions that can be replayed on any
	// chain. Both are false by default.
	AcceptBlobs, AcceptUnprotected bool
	// Precheck is an additional check of the rollup. Add returns its error. It
	// is the last check: the pool calls it only for transactions that it would
	// admit, so that an expensive check costs an attacker as much as an
	// admission. It is called without a lock and concurrently. Nil means no
	// check.
	Precheck func(*types.Transaction) error
	// Sender returns the sender of a transaction on rollups whose signatures
	// are not Ethereum's. Nil means Ethereum's signatures.
	Sender func(*types.Transaction) (common.Address, error)
	// ExtraCost returns the amount that a transaction can cost its sender in
	// addition to gas and value, in wei, for example a data fee. Nil means 0.
	ExtraCost func(*types.Transaction) *uint256.Int
	// DASize returns the size of a transaction that counts towards
	// Budget.DABytes, in bytes. Nil means the size of its encoding.
	DASize func(*types.Transaction) uint64
	// MaxRecoveries is the maximum number of concurrent signature recoveries. 0
	// means one per processor.
	MaxRecoveries int

	// MaxPending is the maximum number of transactions that can run; MaxParked
	// that of transactions that do not pay the floor or the base fee; MaxQueued
	// that of transactions behind nonce gaps. Each is at least 1; the defaults
	// are 1,000. A parked or queued transaction never displaces a pending one, and
	// those that were pending before do not count as parked or queued.
	// Transactions in open leases do not count: the host chooses them, and
	// newcomers find room while a block is built.
	MaxPending, MaxParked, MaxQueued int
	// MaxPendingBytes, MaxParkedBytes and MaxQueuedBytes bound the memory of
	// these transactions, in bytes, each at least MaxTxSize. The
	// defaults are 1,000 times MaxTxSize. The memory of a transaction includes
	// the pool's data about it and is exact within a quarter. A plain transfer
	// takes about 1.1 kB (invariant I15).
	MaxPendingBytes, MaxParkedBytes, MaxQueuedBytes uint64
	// MaxPerSender is the maximum number of transactions of one sender,
	// including leased ones, at least 1. The default is 16. Transactions that
	// come back are exempt from this cap and from those above: see the package
	// documentation.
	MaxPerSender int
	// MaxNonceDistance bounds the nonce of a transaction, which must be at most
	// the account's nonce plus MaxNonceDistance. It is at least 1; the default
	// is 64.
	MaxNonceDistance uint64
	// MaxDelegated is the maximum number of transactions of a sender that is or
	// may become delegated (EIP-7702), at least 1. The default is 1, because
	// another party can invalidate all of them at once.
	MaxDelegated int
	// MinReadyPerSender protects the first pending transactions of each sender,
	// up to this number: only a newcomer that is among its sender's first ones
	// can displace them. 0, the default, protects none.
	MinReadyPerSender int

	// MinGasPrice is the initial and the lowest floor, and MaxFloor the
	// highest, at least MinGasPrice. The defaults are 1 gwei and 1,000 gwei.
	MinGasPrice, MaxFloor uint64
	// FloorWindow is the number of recent blocks whose median price the floor
	// follows, at most 1,024. A block that is at most half full counts as one
	// at MinGasPrice. The default is 20; 0 keeps the floor at MinGasPrice.
	FloorWindow int
	// FloorWeight is the weight of the newest median in the exponential average
	// that the floor follows, from 1 to 1,000. The default is 200.
	FloorWeight uint64
	// SurgeThreshold and SurgeSlope make newcomers pay more than the floor if
	// the pool is nearly full. Above an occupancy of SurgeThreshold they pay 1
	// + SurgeSlope·(occupancy − SurgeThreshold) times the floor. The occupancy
	// is the larger of two quotients: the number of pending transactions by
	// SoftPending, and their size by SoftPendingBytes. Both are at most 10,000
	// per mille; the defaults are 700 and 2,000.
	SurgeThreshold, SurgeSlope uint64
	// SoftPending and SoftPendingBytes are the number and the size at which the
	// occupancy is 100 %. 0, the default, means MaxPending and MaxPendingBytes.
	SoftPending      int
	SoftPendingBytes uint64
	// PriceBump is the minimum increase of both fee cap and tip in a
	// replacement, in per mille, at most 10,000. The default is 125.
	PriceBump uint64
	// MaxSizeGrowth is the maximum growth of the encoding by a replacement, in
	// per mille, at most 10,000. 0 means no maximum. The default is 250.
	MaxSizeGrowth uint64
	// MaxReplacements is the maximum number of replacements of one nonce within
	// ReplacementWindow, from 1 to 65,535. The defaults are 10 and one minute.
	MaxReplacements   int
	ReplacementWindow time.Duration
	// Ordering is the order of transactions from different senders. Nil means
	// [ByTip].
	Ordering Ordering

	// Lifetime is the age at which the pool drops a transaction. It must be
	// positive; the default is one hour. An expired transaction stays while
	// later transactions of its sender that depend on it stay, and up to a
	// sixteenth of Lifetime longer. The pool looks for expired ones in Add,
	// Build and Reset, and with a timer if Now is nil.
	Lifetime time.Duration
	// LeaseLifetime is the time after which the pool releases a lease that was
	// not renewed. It must be positive; the default is one minute.
	LeaseLifetime time.Duration
	// TombstoneTime is how long a replaced transaction is refused, and
	// QuarantineTime how long one that failed while a block was built. 0 means
	// not at all. The defaults are ten minutes.
	TombstoneTime, QuarantineTime time.Duration
	// DepartureTime is how long Pool.Departure remembers why a transaction left
	// the pool. 0 means not at all. The default is one day.
	DepartureTime time.Duration
	// MaxDepartures is the maximum number of remembered departures, at least 1.
	// The oldest one is forgotten first. Each takes up to 500 bytes of memory.
	// The default is 65,536.
	MaxDepartures int
	// AccountCache is the number of accounts of refused transactions that are
	// cached until the next Reset, at least 1. The default is 4,096.
	AccountCache int

	// Now returns the current time. Nil means time.Now. Ages follow its monotonic
	// reading if it has one, so setting the machine's clock expires nothing.
	Now func() time.Time
	// Observe is called with each event, in order and without the pool's lock.
	// Nil means no observer. Observe may call the pool. It must return soon,
	// because later events wait in memory, and it must not wait for another
	// goroutine that calls the pool. Callers that may block should use
	// [Pool.Subscribe] instead.
	Observe func(Event)
	// Metrics receives measurements. The zero value discards them.
	Metrics Metrics
	// Journal stores accepted transactions and leases, so that Pool.Restore can
	// recover them after a restart. Nil means that a restart loses them.
	Journal Journal
	// Logger receives problems that an operator should check, for example a
	// failing journal or an account that cannot be read. Nil discards them.
	Logger *slog.Logger
}

// DefaultConfig returns the default configuration for a chain: blocks of 30
// million gas, 1,000 transactions each pending, parked and queued, 16
// transactions per sender, and a floor of at least 1 gwei. Each field documents
// its default.
func DefaultConfig(chainID *big.Int) Config {
	const (
		count = 1000
		size  = 32 * 1024
		gwei  = 1_000_000_000
	)
	return Config{
		ChainID:           chainID,
		BlockGasLimit:     30_000_000,
		MaxTxGas:          1 << 24,
		MaxInitCodeSize:   49_152,
		InitCodeGas:       true,
		FloorDataGas:      true,
		MaxTxSize:         size,
		MaxAccessList:     512,
		MaxAuthorizations: 16,
		MaxPending:        count,
		MaxParked:         count,
		MaxQueued:         count,
		MaxPendingBytes:   count * size,
		MaxParkedBytes:    count * size,
		MaxQueuedBytes:    count * size,
		MaxPerSender:      16,
		MaxNonceDistance:  64,
		MaxDelegated:      1,
		MinGasPrice:       gwei,
		MaxFloor:          1000 * gwei,
		FloorWindow:       20,
		FloorWeight:       200,
		SurgeThreshold:    700,
		SurgeSlope:        2000,
		PriceBump:         125,
		MaxSizeGrowth:     250,
		MaxReplacements:   10,
		ReplacementWindow: time.Minute,
		Lifetime:          time.Hour,
		LeaseLifetime:     time.Minute,
		TombstoneTime:     10 * time.Minute,
		QuarantineTime:    10 * time.Minute,
		DepartureTime:     24 * time.Hour,
		MaxDepartures:     64 * 1024,
		AccountCache:      4096,
	}
}

// DefaultConfigEIP1559 returns the default configuration for a chain with a
// base fee (EIP-1559). The base fee is then the price that follows demand. The
// pool's floor stays at 1 wei, because two prices would push each other up, and
// newcomers pay no surge.
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

// Validate returns nil if all fields are valid. Otherwise it returns an error
// that wraps [ErrInvalidConfig] and names each field that is out of range, its
// value and the range.
func (c *Config) Validate() error {
	var wrong []string
	if c.ChainID == nil || c.ChainID.Sign() <= 0 {
		wrong = append(wrong, fmt.Sprintf("ChainID is %v, want positive", c.ChainID))
	}
	for _, f := range []limited[uint64]{
		{"BlockGasLimit", c.BlockGasLimit, txGas, math.MaxUint64},
		{"MaxTxSize", c.MaxTxSize, 1, maxTxSize},
		{"MaxPendingBytes", c.MaxPendingBytes, c.MaxTxSize, math.MaxUint64},
		{"MaxParkedBytes", c.MaxParkedBytes, c.MaxTxSize, math.MaxUint64},
		{"MaxQueuedBytes", c.MaxQueuedBytes, c.MaxTxSize, math.MaxUint64},
		{"MaxNonceDistance", c.MaxNonceDistance, 1, math.MaxUint64},
		{"MaxFloor", c.MaxFloor, c.MinGasPrice, math.MaxUint64},
		{"FloorWeight", c.FloorWeight, 1, perMille},
		{"SurgeThreshold", c.SurgeThreshold, 0, maxShare}, {"SurgeSlope", c.SurgeSlope, 0, maxShare},
		{"PriceBump", c.PriceBump, 0, maxShare}, {"MaxSizeGrowth", c.MaxSizeGrowth, 0, maxShare},
	} {
		wrong = f.check(wrong)
	}
	for _, f := range []limited[int]{
		{"MaxInitCodeSize", c.MaxInitCodeSize, 0, math.MaxInt32},
		{"MaxAccessList", c.MaxAccessList, 1, math.MaxInt32}, {"MaxAuthorizations", c.MaxAuthorizations, 1, math.MaxInt32},
		{"MaxRecoveries", c.MaxRecoveries, 0, math.MaxInt32},
		{"MaxPending", c.MaxPending, 1, math.MaxInt32}, {"MaxParked", c.MaxParked, 1, math.MaxInt32},
		{"MaxQueued", c.MaxQueued, 1, math.MaxInt32}, {"MaxPerSender", c.MaxPerSender, 1, math.MaxInt32},
		{"MaxDelegated", c.MaxDelegated, 1, math.MaxInt32}, {"MinReadyPerSender", c.MinReadyPerSender, 0, math.MaxInt32},
		{"FloorWindow", c.FloorWindow, 0, maxFloorWindow}, {"SoftPending", c.SoftPending, 0, math.MaxInt32},
		{"MaxReplacements", c.MaxReplacements, 1, math.MaxUint16}, {"MaxDepartures", c.MaxDepartures, 1, math.MaxInt32},
		{"AccountCache", c.AccountCache, 1, math.MaxInt32},
	} {
		wrong = f.check(wrong)
	}
	for _, f := range []limited[time.Duration]{
		{"Lifetime", c.Lifetime, 1, math.MaxInt64}, {"LeaseLifetime", c.LeaseLifetime, 1, math.MaxInt64},
		{"ReplacementWindow", c.ReplacementWindow, 0, math.MaxInt64}, {"TombstoneTime", c.TombstoneTime, 0, math.MaxInt64},
		{"QuarantineTime", c.QuarantineTime, 0, math.MaxInt64}, {"DepartureTime", c.DepartureTime, 0, math.MaxInt64},
	} {
		wrong = f.check(wrong)
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrInvalidConfig, strings.Join(wrong, "; "))
}

// limited is a field with its range.
type limited[T cmp.Ordered] struct {
	field          string
	have, min, max T
}

// check adds the field to the wrong ones if it is out of range.
func (f limited[T]) check(wrong []string) []string {
	if f.have >= f.min && f.have <= f.max {
		return wrong
	}
	return append(wrong, fmt.Sprintf("%s is %v, want %v to %v", f.field, f.have, f.min, f.max))
}

// lenient returns the rules for transactions that were accepted before. Limits
// that an operator may have lowered since do not apply.
func (c *Config) lenient() Config {
	l := *c
	l.MinGasPrice = 0
	l.MaxTxSize, l.MaxTxGas, l.MaxInitCodeSize = maxTxSize, 0, 0
	l.MaxAccessList, l.MaxAuthorizations = math.MaxInt32, math.MaxInt32
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
	if c.Ordering == nil {
		c.Ordering = ByTip{}
	}
	if c.SoftPending == 0 {
		c.SoftPending = c.MaxPending
	}
	if c.SoftPendingBytes == 0 {
		c.SoftPendingBytes = c.MaxPendingBytes
	}
	return c
}
