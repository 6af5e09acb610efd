package node

import (
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
)

// ErrInvalidConfig is wrapped by every error of Config.Validate.
var ErrInvalidConfig = errors.New("node: invalid config")

// Config configures a node. Start from [DefaultConfig].
type Config struct {
	// Spec has the constants of the JAM chain.
	Spec jamq.ChainSpec
	// ChainID is the chain ID of the rollup, above 0.
	ChainID *big.Int
	// Genesis are the accounts of block 0. Nil means ten accounts of package devkeys with 10,000
	// ether each, whose keys are public.
	Genesis types.GenesisAlloc
	// Rules change how the chain differs from Ethereum.
	Rules evmrollup.Rules
	// JAM configures the embedded chain. The node sets its spec and start slot.
	JAM jamtest.Config
	// JAMURL, if not empty, is the URL of a JAM node's RPC (JIP-2, ws://). The
	// node then works on that chain and uses its spec.
	JAMURL string
	// Dev makes block 0 as developers expect it: its time is the present one, and a contract
	// that their tools use exists. It cannot be used with JAMURL or DataDir, because block 0
	// differs at each start.
	Dev bool
	// Service is the rollup's service on the JAM chain. A data directory is used with one
	// service only.
	Service jamq.ServiceID
	// Version is the version of the Gray Paper in which the node encodes
	// packages, that of the JAM chain. A JAM node's RPC does not tell it. A data
	// directory is used with one version only. The default is 0.7.2.
	Version codec.Version
	// Key is the builder's Ed25519 key, which signs the packages. The rollup's service takes
	// only those. The default is devkeys.Builder, which is public.
	Key crypto.Signer
	// DataDir is the directory of the database. If it is empty, the node keeps
	// everything in memory. An embedded JAM chain does not survive the process;
	// blocks that were not final are then executed again. A directory is used either
	// with an embedded chain or with that of a JAM node, and with one length of a slot.
	DataDir string
	// Cluster, if its URL is not empty, is the log that this node shares with the other replicas of
	// the rollup. One of them leads. The others follow it: they can be read, and one of them
	// leads next. It needs JAMURL, DataDir and Cluster.Address, the URL of this node's RPC.
	Cluster pglog.Config
	// Authorize adds a token to a request to another replica. Nil adds none.
	Authorize func(http.Header) error
	// MaxTxsPerBundle is the maximum number of transactions in a block, at
	// least 1.
	MaxTxsPerBundle int
	// RetainStates is the number of blocks before the final one whose state is
	// kept, at least 1. The state of the genesis is always kept.
	RetainStates int
	// KeepBlocks is the number of final blocks of which the data directory keeps
	// bodies, receipts and index, at least 256; 0 means all, and is the default.
	// Of older blocks only headers and progress are left. It needs DataDir.
	KeepBlocks uint64
	// MaxPool is the maximum number of pending, and of queued, transactions in
	// the pool. MaxPerSender is that of one sender.
	MaxPool, MaxPerSender int
	// Metrics are the hooks for metrics. The zero value disables them.
	Metrics Metrics
	// Logger receives messages for operators. Nil is silent.
	Logger *slog.Logger
}

// Metrics has the hooks of the packages with metrics.
type Metrics struct {
	Pool    evmrollup.PoolMetrics // see evmrollup.Config
	Builder jamq.Metrics          // see builder.Config
	States  jamq.Metrics          // see statedb.Config
}

// DefaultChainID is 0x1107, and DefaultService is the same number.
const (
	DefaultChainID                = 4359
	DefaultService jamq.ServiceID = DefaultChainID
)

// DefaultConfig returns a node in memory on an embedded JAM chain without
// faults.
func DefaultConfig(spec jamq.ChainSpec, slot time.Duration, seed uint64) Config {
	spec.SlotDuration = slot
	return Config{
		Spec:            spec,
		ChainID:         big.NewInt(DefaultChainID),
		Service:         DefaultService,
		Key:             devkeys.Builder(),
		JAM:             jamtest.DefaultConfig(spec, seed),
		MaxTxsPerBundle: 5,
		RetainStates:    128,
		MaxPool:         20_000,
		MaxPerSender:    64,
	}
}

// Validate returns an error that wraps [ErrInvalidConfig] and names the first
// field that is out of range.
func (c *Config) Validate() error {
	switch {
	case c.ChainID == nil || c.ChainID.Sign() <= 0 || c.ChainID.BitLen() > 64:
		return fmt.Errorf("%w: ChainID is %v, want 1 to 2^64-1", ErrInvalidConfig, c.ChainID)
	case c.Key == nil:
		return fmt.Errorf("%w: Key is nil, want the builder's Ed25519 key", ErrInvalidConfig)
	case c.Dev && (c.JAMURL != "" || c.DataDir != ""):
		return fmt.Errorf("%w: Dev is set together with JAMURL %q or DataDir %q, want it alone: block 0 differs at each start", ErrInvalidConfig, c.JAMURL, c.DataDir)
	case c.Cluster.URL != "" && (c.JAMURL == "" || c.DataDir == "" || c.Cluster.Address == ""):
		return fmt.Errorf("%w: Cluster is set, and JAMURL is %q, DataDir %q and Cluster.Address %q, want all of them", ErrInvalidConfig, c.JAMURL, c.DataDir, c.Cluster.Address)
	case c.MaxTxsPerBundle < 1:
		return fmt.Errorf("%w: MaxTxsPerBundle is %d, want at least 1", ErrInvalidConfig, c.MaxTxsPerBundle)
	case c.RetainStates < 1:
		return fmt.Errorf("%w: RetainStates is %d, want at least 1", ErrInvalidConfig, c.RetainStates)
	case c.KeepBlocks != 0 && c.KeepBlocks < ledger.MinKeep:
		return fmt.Errorf("%w: KeepBlocks is %d, want 0 or at least %d", ErrInvalidConfig, c.KeepBlocks, ledger.MinKeep)
	case c.KeepBlocks != 0 && c.DataDir == "":
		return fmt.Errorf("%w: KeepBlocks is %d, but there is no DataDir", ErrInvalidConfig, c.KeepBlocks)
	}
	if _, err := service.NewSigner(c.Version, c.Key); err != nil {
		return fmt.Errorf("%w: Key: %w", ErrInvalidConfig, err)
	}
	if err := c.Spec.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	if c.Cluster.URL != "" {
		if err := c.Cluster.Validate(); err != nil {
			return fmt.Errorf("%w: Cluster: %w", ErrInvalidConfig, err)
		}
	}
	if c.JAMURL != "" {
		return nil
	}
	if err := c.JAM.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	return nil
}

// settings returns what must be the same at every start with a data directory. Of the rollup's
// chain, the ledger compares the genesis.
func (c *Config) settings() []store.Setting {
	network := "embedded"
	if c.JAMURL != "" {
		network = "that of a JAM node"
	}
	return []store.Setting{
		{Name: "service", Value: fmt.Sprint(c.Service)},
		{Name: "Gray Paper", Value: c.Version.String()},
		{Name: "JAM chain", Value: network},
	}
}

// chainSettings returns the same of a JAM chain. Its numbers of slots have another meaning if
// slots have another length.
func chainSettings(spec jamq.ChainSpec) []store.Setting {
	return []store.Setting{
		{Name: "slot", Value: spec.SlotDuration.String()},
		{Name: "validators", Value: fmt.Sprint(spec.Validators)},
		{Name: "slots of an epoch", Value: fmt.Sprint(spec.EpochLength)},
	}
}
