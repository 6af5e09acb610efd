package node

import (
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/txpool"
)

// ErrInvalidConfig is wrapped by every error of Config.Validate.
var ErrInvalidConfig = errors.New("node: invalid config")

// Config says what the node is like. Begin with [DefaultConfig].
type Config struct {
	// Spec holds the JAM chain's constants.
	Spec jamq.ChainSpec
	// ChainID is the rollup's, positive.
	ChainID *big.Int
	// JAM configures the embedded chain; its spec and start slot are set by the node.
	JAM jamtest.Config
	// JAMURL, if not empty, is the RPC of a JAM node (JIP-2, ws://): the node works on that chain, and the spec is the chain's.
	JAMURL string
	// Lab lets users break the embedded chain while it runs: see [Node.Lab]. It is not for a JAM node's chain.
	Lab bool
	// Service is the rollup's service on the JAM chain.
	Service jamq.ServiceID
	// DataDir is a directory for what must survive the process; empty for memory only. An embedded JAM chain does not survive it: then what
	// was not final is executed anew.
	DataDir string
	// MaxTxsPerBundle bounds the transactions of a block, at least 1.
	MaxTxsPerBundle int
	// RetainStates is for how many finalized blocks the state is kept, at least 1. The genesis' always is.
	RetainStates uint64
	// MaxPool bounds the transactions in the pool, pending and queued each, and those of one sender.
	MaxPool, MaxPerSender int
	// Metrics is told what the packages count; the zero value counts nothing.
	Metrics Metrics
	// Logger gets what an operator should know. Nil is silent.
	Logger *slog.Logger
}

// Metrics are the hooks of the packages that have some.
type Metrics struct {
	Pool   txpool.Metrics
	Runner submit.Metrics
	States statedb.Metrics
}

// DefaultChainID is 0x1107, and so is the service.
const (
	DefaultChainID                = 4359
	DefaultService jamq.ServiceID = DefaultChainID
)

// DefaultConfig returns a node in memory on a JAM chain on which everything goes well.
func DefaultConfig(spec jamq.ChainSpec, slot time.Duration, seed uint64) Config {
	spec.SlotDuration = slot
	return Config{
		Spec:            spec,
		ChainID:         big.NewInt(DefaultChainID),
		Service:         DefaultService,
		JAM:             jamtest.DefaultConfig(spec, seed),
		MaxTxsPerBundle: 5,
		RetainStates:    10_000,
		MaxPool:         20_000,
		MaxPerSender:    64,
	}
}

// Validate names the first field that is out of range. The error wraps [ErrInvalidConfig].
func (c *Config) Validate() error {
	switch {
	case c.ChainID == nil || c.ChainID.Sign() <= 0 || c.ChainID.BitLen() > 64:
		return fmt.Errorf("%w: ChainID is %v, want 1 to 2^64-1", ErrInvalidConfig, c.ChainID)
	case c.Lab && c.JAMURL != "":
		return fmt.Errorf("%w: Lab is set together with JAMURL %q, want one of them: only the embedded chain can be broken", ErrInvalidConfig, c.JAMURL)
	case c.MaxTxsPerBundle < 1:
		return fmt.Errorf("%w: MaxTxsPerBundle is %d, want at least 1", ErrInvalidConfig, c.MaxTxsPerBundle)
	case c.RetainStates < 1:
		return fmt.Errorf("%w: RetainStates is %d, want at least 1", ErrInvalidConfig, c.RetainStates)
	}
	if err := c.Spec.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	if c.JAMURL != "" {
		return nil
	}
	if err := c.JAM.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	return nil
}
