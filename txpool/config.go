package txpool

import (
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// State is what the pool must know of the chain: the accounts at the host's newest executed block.
type State interface {
	// Account returns an account's next nonce and its balance in wei; 0 and 0 for one that does not exist. It may be
	// called from several goroutines at once.
	Account(address common.Address) (nonce uint64, balance *uint256.Int, err error)
}

// Config holds the pool's limits. Begin with [DefaultConfig].
type Config struct {
	// ChainID is the chain that transactions must be signed for, positive.
	ChainID *big.Int
	// BlockGasLimit is the most gas that one transaction may ask for, at least 21,000.
	BlockGasLimit uint64
	// MinGasPrice is the least fee cap and gas price, in wei; nil means 0.
	MinGasPrice *uint256.Int
	// MaxTxSize is the greatest encoding of a transaction, in bytes, at least 1.
	MaxTxSize uint64
	// MaxPending and MaxQueued bound the transactions that can run now and those behind a gap, each at least 1.
	MaxPending, MaxQueued int
	// MaxPendingBytes and MaxQueuedBytes bound their encodings together, in bytes, each at least MaxTxSize.
	MaxPendingBytes, MaxQueuedBytes uint64
	// MaxPerSender bounds the transactions of one sender, at least 1.
	MaxPerSender int
	// MaxNonceDistance is how far beyond the account's nonce a transaction's may be, at least 1.
	MaxNonceDistance uint64
	// PriceBumpPermille is how much more a replacement must pay, of both fee cap and tip, in per mille, at most 10,000.
	PriceBumpPermille uint64
	// Lifetime is how long a transaction may wait before CleanupExpired drops it, positive.
	Lifetime time.Duration
	// LeaseLifetime is how long a lease may stay open before CleanupExpired releases it, positive.
	LeaseLifetime time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Observe is told what happens to transactions, in order and with no lock held; nil means nobody. It may call the pool.
	Observe func(Event)
}

// DefaultConfig returns the defaults: 1 gwei at least, blocks of 30 M gas, 32 KiB a transaction, 1000 pending, 1000 queued and 16
// a sender, replacement for an eighth more, one hour to live, a minute for a lease.
func DefaultConfig(chainID *big.Int) Config {
	const size = 32 * 1024
	return Config{
		ChainID:           chainID,
		BlockGasLimit:     30_000_000,
		MinGasPrice:       uint256.NewInt(1_000_000_000),
		MaxTxSize:         size,
		MaxPending:        1000,
		MaxQueued:         1000,
		MaxPendingBytes:   1000 * size,
		MaxQueuedBytes:    1000 * size,
		MaxPerSender:      16,
		MaxNonceDistance:  64,
		PriceBumpPermille: 125,
		Lifetime:          time.Hour,
		LeaseLifetime:     time.Minute,
	}
}

// Validate names the first field that is out of range, its value and what is allowed. The error wraps
// [ErrInvalidConfig].
func (c *Config) Validate() error {
	if c.ChainID == nil || c.ChainID.Sign() <= 0 {
		return fmt.Errorf("%w: ChainID is %v, want positive", ErrInvalidConfig, c.ChainID)
	}
	for _, f := range []struct {
		field     string
		have, min uint64
	}{
		{"BlockGasLimit", c.BlockGasLimit, txGas},
		{"MaxTxSize", c.MaxTxSize, 1},
		{"MaxPendingBytes", c.MaxPendingBytes, c.MaxTxSize},
		{"MaxQueuedBytes", c.MaxQueuedBytes, c.MaxTxSize},
		{"MaxNonceDistance", c.MaxNonceDistance, 1},
	} {
		if f.have < f.min {
			return fmt.Errorf("%w: %s is %d, want at least %d", ErrInvalidConfig, f.field, f.have, f.min)
		}
	}
	for _, f := range []struct {
		field string
		have  int
	}{{"MaxPending", c.MaxPending}, {"MaxQueued", c.MaxQueued}, {"MaxPerSender", c.MaxPerSender}} {
		if f.have < 1 {
			return fmt.Errorf("%w: %s is %d, want at least 1", ErrInvalidConfig, f.field, f.have)
		}
	}
	if c.PriceBumpPermille > 10_000 {
		return fmt.Errorf("%w: PriceBumpPermille is %d, want at most 10000", ErrInvalidConfig, c.PriceBumpPermille)
	}
	if c.Lifetime <= 0 || c.LeaseLifetime <= 0 {
		return fmt.Errorf("%w: Lifetime is %v and LeaseLifetime %v, want positive", ErrInvalidConfig, c.Lifetime, c.LeaseLifetime)
	}
	return nil
}
