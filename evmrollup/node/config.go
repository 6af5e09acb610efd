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

// Config is the configuration of a node. Start from [DefaultConfig].
type Config struct {
	// Spec has the constants of the JAM chain.
	Spec jamq.ChainSpec
	// ChainID is the chain ID of the rollup, above 0.
	ChainID *big.Int
	// Genesis contains the accounts of block 0. Nil means ten accounts of package devkeys with
	// 10,000 ether each. The keys of these accounts are public.
	Genesis types.GenesisAlloc
	// Rules are the rules of this chain that differ from Ethereum's.
	Rules evmrollup.Rules
	// JAM configures the simulated JAM chain that runs inside the node. The node sets its
	// spec and start slot.
	JAM jamtest.Config
	// JAMURL is the URL of a JAM node's RPC (JIP-2, ws://). If it is set, the node uses
	// that JAM node's chain and spec instead of a simulated chain.
	JAMURL string
	// Dev gives block 0 the properties that developers expect: the present time, and a
	// contract that their tools need. Block 0 is therefore different at each start, so that
	// Dev cannot be used together with JAMURL or DataDir.
	Dev bool
	// Service is the number of the rollup's service on the JAM chain. It must be the same
	// at every start with a data directory.
	Service jamq.ServiceID
	// Version is the Gray Paper version of the JAM chain, which determines the encoding of
	// packages. The host must set it, because the RPC of a JAM node does not return it.
	// Version must be the same at every start with a data directory. The default is 0.7.2.
	Version codec.Version
	// Key is the builder's Ed25519 key, which signs the node's packages. The rollup's
	// service accepts only packages with such a signature. The default is devkeys.Builder,
	// whose secret is public.
	Key crypto.Signer
	// DataDir is the directory of the database. If it is empty, the node keeps everything
	// in memory. A directory can be used either with a simulated JAM chain or with the
	// chain of a JAM node, and with only one slot duration. A simulated chain ends with the
	// process, so that blocks that were not final are executed again after a restart.
	DataDir string
	// Cluster configures the log that this node shares with the other replicas of the
	// rollup, in the database at Cluster.URL. One replica is the leader. The others follow
	// it and answer calls that only read. A cluster needs JAMURL, DataDir and
	// Cluster.Address, which is the URL of this node's RPC. If Cluster.URL is empty, the
	// node runs alone.
	Cluster pglog.Config
	// Authorize adds a token to the header of each request to another replica. If Authorize
	// is nil, requests have no token.
	Authorize func(http.Header) error
	// MaxTxsPerBundle is the maximum number of transactions in a block. It must be at least 1.
	MaxTxsPerBundle int
	// RetainStates is how many blocks before the final block keep their state, at least 1.
	// The state of block 0 is always kept.
	RetainStates int
	// KeepBlocks is the number of final blocks that the data directory keeps whole, with
	// bodies, receipts and index. It must be at least 256. 0, the default, means that all
	// blocks are kept. Of older blocks, only the headers and the progress remain.
	// KeepBlocks needs DataDir.
	KeepBlocks uint64
	// MaxPool is the maximum number of pending transactions in the pool. The pool may have as
	// many queued ones in addition. MaxPerSender is the maximum number of transactions from
	// one sender.
	MaxPool, MaxPerSender int
	// Metrics contains the functions that receive measurements. The zero value turns them off.
	Metrics Metrics
	// Logger receives messages for operators. Nil means that there are no messages.
	Logger *slog.Logger
}

// Metrics contains the functions that receive the measurements of the node's
// packages.
type Metrics struct {
	Pool    evmrollup.PoolMetrics // see evmrollup.Config
	Builder jamq.Metrics          // see builder.Config
	States  jamq.Metrics          // see statedb.Config
}

// The default chain ID and service number of a node. Both are 0x1107 in hexadecimal.
const (
	DefaultChainID                = 4359
	DefaultService jamq.ServiceID = DefaultChainID
)

// DefaultConfig returns the configuration of a node in memory, on a simulated JAM chain
// without faults. slot is the slot duration, and seed is the seed of the simulation.
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

// settings returns the settings that must be the same at every start with a directory.
func (c *Config) settings() []store.Setting {
	// The settings of the rollup's chain are not in this list, because the ledger compares the
	// genesis block.
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

// chainSettings returns the settings of a JAM chain that must be the same at every
// start.
func chainSettings(spec jamq.ChainSpec) []store.Setting {
	// With another slot duration, for example, the slot numbers on the disk would mean
	// other times.
	return []store.Setting{
		{Name: "slot", Value: spec.SlotDuration.String()},
		{Name: "validators", Value: fmt.Sprint(spec.Validators)},
		{Name: "slots of an epoch", Value: fmt.Sprint(spec.EpochLength)},
	}
}
