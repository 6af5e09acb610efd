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
)

// Config holds the pool's rules and limits. Begin with [DefaultConfig]. Prices are in wei per gas, shares in per mille.
type Config struct {
	// ChainID is the chain that transactions must be signed for, positive.
	ChainID *big.Int

	// BlockGasLimit is the most gas that one transaction may ask for, at least 21,000.
	BlockGasLimit uint64
	// MaxTxSize is the greatest encoding of a transaction, in bytes, from 1 to 2^28.
	MaxTxSize uint64
	// MaxAccessList bounds the addresses and keys of an access list, MaxAuthorizations the authorizations (EIP-7702), each at least 1.
	MaxAccessList, MaxAuthorizations int
	// AcceptBlobs takes blob transactions (EIP-4844), without their sidecars; AcceptUnprotected those that any chain can replay.
	AcceptBlobs, AcceptUnprotected bool
	// Precheck is the rollup's own check, before the signature's; nil means none. Its error is the one of Add.
	Precheck func(*types.Transaction) error
	// Sender says who sent a transaction, where that is not told by Ethereum's signature; nil means that it is.
	Sender func(*types.Transaction) (common.Address, error)
	// ExtraCost is what a transaction can take from its sender beyond gas and value, in wei, such as a fee for data; nil means nothing.
	ExtraCost func(*types.Transaction) *uint256.Int
	// DASize is what a transaction takes of Budget.DABytes, in bytes; nil means its encoding.
	DASize func(*types.Transaction) uint64
	// MaxRecoveries bounds the signatures that are recovered at once; 0 means one per processor.
	MaxRecoveries int

	// MaxPending bounds the transactions that can run, those in open leases with them; MaxParked those that do not pay the floor or
	// the base fee now; MaxQueued those behind nonce gaps; each at least 1. What is held never takes the place of what can run.
	MaxPending, MaxParked, MaxQueued int
	// MaxPendingBytes, MaxParkedBytes and MaxQueuedBytes bound their size in memory together, in bytes, each at least MaxTxSize. A
	// transaction counts with its encoding and with its access list and authorizations as they lie in memory (invariant I15).
	MaxPendingBytes, MaxParkedBytes, MaxQueuedBytes uint64
	// MaxPerSender bounds the transactions of one sender, at least 1. None of
	// these caps applies to a transaction that comes back: see the package's
	// documentation.
	MaxPerSender int
	// MaxNonceDistance is how far beyond the account's nonce a transaction's may be, at least 1.
	MaxNonceDistance uint64
	// MaxDelegated bounds the transactions of a sender that is or may become delegated (EIP-7702), at least 1: others can make all of
	// them worthless at once.
	MaxDelegated int
	// MinReadyPerSender is how many transactions of each sender can only be displaced by senders that have no more themselves; 0: none.
	MinReadyPerSender int

	// MinGasPrice is where the floor begins and below which it never falls; MaxFloor above which it never rises, at least MinGasPrice.
	MinGasPrice, MaxFloor uint64
	// FloorWindow is over how many blocks the median price is taken that the floor follows, at most 1,024; 0: the floor is MinGasPrice. A
	// block that is at most half full counts as one at MinGasPrice.
	FloorWindow int
	// Above an occupancy of SurgeThreshold, newcomers pay 1 + SurgeSlope·(occupancy − SurgeThreshold) times the floor. Occupancy is
	// the greater of the executable transactions' count over SoftPending and of their bytes over SoftPendingBytes.
	SurgeThreshold, SurgeSlope uint64
	// SoftPending and SoftPendingBytes are full occupancy; 0 means MaxPending and MaxPendingBytes.
	SoftPending      int
	SoftPendingBytes uint64
	// PriceBump is how much more a replacement must pay, of both fee cap and tip, in per mille, at most 10,000.
	PriceBump uint64
	// MaxReplacements bounds the replacements of one nonce within ReplacementWindow, from 1 to 65,535.
	MaxReplacements   int
	ReplacementWindow time.Duration
	// Ordering is the order among senders; nil means ByTip.
	Ordering Ordering

	// Lifetime is how long a transaction may wait before CleanupExpired drops it, positive; one that others of its sender follow in line stays as
	// long as they do.
	Lifetime time.Duration
	// LeaseLifetime is how long a lease may stay open before CleanupExpired releases it, positive.
	LeaseLifetime time.Duration
	// TombstoneTime is how long a replaced transaction is refused, QuarantineTime how long one that failed in building; 0: not at all.
	TombstoneTime, QuarantineTime time.Duration
	// DepartureTime is how long Pool.Departure remembers why a transaction left
	// the pool; 0: not at all.
	DepartureTime time.Duration
	// MaxDepartures is how many departures are remembered, at least 1: the oldest
	// is forgotten for the newest. One takes up to 500 bytes of memory.
	MaxDepartures int
	// AccountCache is how many accounts of refused transactions are remembered until the next Reset, at least 1.
	AccountCache int

	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Observe is told what happens to transactions, in order and with no lock held; nil means nobody. It may call the pool, but must
	// not wait for another goroutine that does, and must return soon: what happens meanwhile waits for it in memory. Whoever cannot
	// promise that uses Pool.Subscribe.
	Observe func(Event)
	// Metrics is told what to count; the zero value counts nothing.
	Metrics Metrics
	// Journal keeps accepted transactions and leases across a restart, see Pool.Restore; nil means that nothing is kept.
	Journal Journal
	// Logger is for what the host should look at, such as a poisoned journal; nil is silent.
	Logger *slog.Logger
}

// DefaultConfig returns the defaults: blocks of 30 M gas, 32 KiB a transaction; 1000 pending, parked and queued each, 16 a sender;
// 1 gwei at least, a floor over 20 blocks, surge from 70 % on; replacement for an eighth more, ten times a minute; an hour to live, a
// minute for a lease, ten for tombstones and quarantine; a day for what left.
func DefaultConfig(chainID *big.Int) Config {
	const (
		count = 1000
		size  = 32 * 1024
		gwei  = 1_000_000_000
	)
	return Config{
		ChainID:           chainID,
		BlockGasLimit:     30_000_000,
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
		SurgeThreshold:    700,
		SurgeSlope:        2000,
		PriceBump:         125,
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

// Bounds that keep sums in range.
const (
	maxTxSize      = 1 << 28
	maxFloorWindow = 1024
	maxShare       = 10_000 // per mille
)

// Validate names the first field that is out of range, its value and what is allowed. The error wraps [ErrInvalidConfig].
func (c *Config) Validate() error {
	if c.ChainID == nil || c.ChainID.Sign() <= 0 {
		return fmt.Errorf("%w: ChainID is %v, want positive", ErrInvalidConfig, c.ChainID)
	}
	for _, f := range []struct {
		field          string
		have, min, max uint64
	}{
		{"BlockGasLimit", c.BlockGasLimit, txGas, math.MaxUint64},
		{"MaxTxSize", c.MaxTxSize, 1, maxTxSize},
		{"MaxPendingBytes", c.MaxPendingBytes, c.MaxTxSize, math.MaxUint64},
		{"MaxParkedBytes", c.MaxParkedBytes, c.MaxTxSize, math.MaxUint64},
		{"MaxQueuedBytes", c.MaxQueuedBytes, c.MaxTxSize, math.MaxUint64},
		{"MaxNonceDistance", c.MaxNonceDistance, 1, math.MaxUint64},
		{"MaxFloor", c.MaxFloor, c.MinGasPrice, math.MaxUint64},
		{"SurgeThreshold", c.SurgeThreshold, 0, maxShare},
		{"SurgeSlope", c.SurgeSlope, 0, maxShare},
		{"PriceBump", c.PriceBump, 0, maxShare},
	} {
		if f.have < f.min || f.have > f.max {
			return fmt.Errorf("%w: %s is %d, want %d to %d", ErrInvalidConfig, f.field, f.have, f.min, f.max)
		}
	}
	for _, f := range []struct {
		field          string
		have, min, max int
	}{
		{"MaxAccessList", c.MaxAccessList, 1, math.MaxInt32}, {"MaxAuthorizations", c.MaxAuthorizations, 1, math.MaxInt32},
		{"MaxRecoveries", c.MaxRecoveries, 0, math.MaxInt32},
		{"MaxPending", c.MaxPending, 1, math.MaxInt32}, {"MaxParked", c.MaxParked, 1, math.MaxInt32},
		{"MaxQueued", c.MaxQueued, 1, math.MaxInt32}, {"MaxPerSender", c.MaxPerSender, 1, math.MaxInt32},
		{"MaxDelegated", c.MaxDelegated, 1, math.MaxInt32}, {"MinReadyPerSender", c.MinReadyPerSender, 0, math.MaxInt32},
		{"FloorWindow", c.FloorWindow, 0, maxFloorWindow}, {"SoftPending", c.SoftPending, 0, math.MaxInt32},
		{"MaxReplacements", c.MaxReplacements, 1, math.MaxUint16}, {"MaxDepartures", c.MaxDepartures, 1, math.MaxInt32},
		{"AccountCache", c.AccountCache, 1, math.MaxInt32},
	} {
		if f.have < f.min || f.have > f.max {
			return fmt.Errorf("%w: %s is %d, want %d to %d", ErrInvalidConfig, f.field, f.have, f.min, f.max)
		}
	}
	for _, f := range []struct {
		field     string
		have, min time.Duration
	}{
		{"Lifetime", c.Lifetime, 1}, {"LeaseLifetime", c.LeaseLifetime, 1}, {"ReplacementWindow", c.ReplacementWindow, 0},
		{"TombstoneTime", c.TombstoneTime, 0}, {"QuarantineTime", c.QuarantineTime, 0},
		{"DepartureTime", c.DepartureTime, 0},
	} {
		if f.have < f.min {
			return fmt.Errorf("%w: %s is %v, want at least %v", ErrInvalidConfig, f.field, f.have, f.min)
		}
	}
	return nil
}

// lenient returns the rules for transactions that were accepted before: limits
// that an operator may have lowered since do not apply.
func (c *Config) lenient() Config {
	l := *c
	l.MinGasPrice = 0
	l.MaxTxSize = maxTxSize
	l.MaxAccessList, l.MaxAuthorizations = math.MaxInt32, math.MaxInt32
	return l
}

// withDefaults fills in what nil and 0 stand for.
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
