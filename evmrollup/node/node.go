package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/big"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/evmrollup/internal/jam"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/store"
)

// ErrDisk is returned after the disk of the data directory has failed. The node must be
// restarted when the disk works again. Nothing that was acknowledged to users is lost.
var ErrDisk = store.ErrDisk

// numAccounts is the number of development accounts with funds in block 0, and
// genesisEther is the balance of each account, in ether.
const (
	numAccounts  = 10
	genesisEther = 10_000
)

// Block is an executed block of the rollup.
type Block = evmrollup.Block

// Node runs an EVM rollup on a JAM chain. It consists of the rollup's chain, its
// builder, and the connection to JAM. A Node is safe for concurrent use. [New] creates
// it.
type Node struct {
	*evmrollup.Chain
	cfg      Config
	log      *slog.Logger
	accounts []devkeys.Account
	store    *store.Store // nil without a data directory
	shared   *pglog.Log   // nil without a cluster
	jam      jam.Network
	builder  *builder.Builder[*Block]
	headLog  *ledger.HeadLog
	progress progress
	service  calls
	observer Observer

	leaving  context.Context // ends when Leave is called
	leave    context.CancelFunc
	stopped  chan struct{} // closed when the builder has stopped
	left     chan struct{} // closed when Leave returns
	leftOnce sync.Once
}

// connectTime is how long New waits for a connection to the JAM node.
const connectTime = 30 * time.Second

// checkpointEvery is the number of log records after which a checkpoint shortens the
// log. A restart executes the blocks again that came after the last checkpoint and are
// not final.
const checkpointEvery = 512

// New returns a node, which [Node.Run] starts. If Config.DataDir contains the data of
// an earlier run, the node continues from there.
func New(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Cluster.URL != "" {
		return openReplica(cfg)
	}
	return open(cfg)
}

// open opens a node with a valid configuration.
func open(cfg Config) (*Node, error) {
	if cfg.DataDir == "" {
		return newNode(cfg, nil)
	}
	var s *store.Store
	err := checkImported(cfg.DataDir)
	if err == nil {
		s, err = store.Open(cfg.DataDir, cfg.Logger, cfg.settings()...)
	}
	if err != nil {
		return nil, cfg.inDirectory(err)
	}
	return newNode(cfg, s)
}

// inDirectory adds the name of the data directory to an error of reading it.
func (c *Config) inDirectory(err error) error {
	if c.DataDir == "" {
		return err
	}
	// An operator needs the name, because the directory may be a bad copy, with files
	// from different moments.
	return fmt.Errorf("node: the data directory %s: %w", c.DataDir, err)
}

// newNode returns a node that owns the data directory s, or has none if s is nil.
func newNode(cfg Config, s *store.Store) (_ *Node, err error) {
	n := &Node{
		cfg: cfg, log: cfg.Logger, store: s, observer: noObserver{}, progress: progress{of: make(map[uint64]Progress)},
		stopped: make(chan struct{}), left: make(chan struct{}),
	}
	n.leaving, n.leave = context.WithCancel(context.Background())
	if n.accounts, err = devkeys.Derive(devkeys.Mnemonic, numAccounts); err == nil {
		err = n.open()
	}
	if err != nil {
		return nil, errors.Join(err, n.closeLog(), n.store.Close())
	}
	return n, nil
}

// open recovers the rollup and connects the node to the JAM chain.
func (n *Node) open() (err error) {
	if n.Chain, err = evmrollup.New(n.rollupConfig()); err != nil {
		return n.cfg.inDirectory(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	if err := n.connect(ctx); err != nil {
		return err
	}
	err = n.store.Bind(append(n.cfg.settings(), chainSettings(n.jam.Spec())...)...)
	if err == nil {
		err = n.recover(ctx)
	}
	if err != nil {
		n.jam.Close()
		return n.cfg.inDirectory(err)
	}
	n.headLog = ledger.NewHeadLog(n.BlockByNumber(n.builder.Heads().Finalized.Number))
	n.recoverProgress()
	n.moveHeads(n.builder.Heads())
	return nil
}

// deployer is the address of the deterministic deployment proxy. Forge and other tools
// use this contract to create contracts at the same addresses on all chains. Other
// chains get the contract by a transaction that is valid on every chain. The pool
// refuses this transaction, as geth does, so this chain has the contract in its genesis
// state.
//
// deployerCode is the code of the contract. It passes the data after the first word to
// CREATE2, with the first word as the salt.
var (
	deployer     = common.HexToAddress("0x4e59b44847b379578588920cA78FbF26c0B4956C")
	deployerCode = common.FromHex("0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3")
)

func (n *Node) rollupConfig() evmrollup.Config {
	cfg := evmrollup.Config{
		ChainID: n.cfg.ChainID, Genesis: maps.Clone(n.cfg.Genesis), Rules: n.cfg.Rules, MaxTxsPerBlock: n.cfg.MaxTxsPerBundle,
		RetainStates: n.cfg.RetainStates, KeepBlocks: n.cfg.KeepBlocks, MaxPool: n.cfg.MaxPool, MaxPerSender: n.cfg.MaxPerSender,
		PoolMetrics: n.cfg.Metrics.Pool, StateMetrics: n.cfg.Metrics.States, Logger: n.log,
	}
	if cfg.Genesis == nil {
		cfg.Genesis = make(types.GenesisAlloc, numAccounts)
		for _, a := range n.accounts {
			cfg.Genesis[a.Address] = types.Account{Balance: new(big.Int).Mul(big.NewInt(genesisEther), big.NewInt(params.Ether))}
		}
	}
	if n.cfg.Dev {
		cfg.GenesisTime = uint64(time.Now().Unix())
		cfg.Genesis[deployer] = types.Account{Nonce: 1, Balance: new(big.Int), Code: deployerCode}
	}
	if n.store != nil {
		cfg.Ledger, cfg.States = n.store.Ledger, n.store.States
	}
	return cfg
}

// recover opens the builder, which restores the rollup from the log.
func (n *Node) recover(ctx context.Context) error {
	rollup, err := n.Rollup()
	if err != nil {
		return err
	}
	cfg := builder.DefaultConfig(n.cfg.Spec)
	// A simulated JAM chain has ended with the previous process. Blocks that were not
	// final then are no longer on JAM.
	cfg.NewChain, cfg.Queue.FirstNumber = n.cfg.JAMURL == "", n.Origin()+1
	cfg.CheckInvariants = true
	cfg.Logger, cfg.Metrics = n.log, n.cfg.Metrics.Builder
	cfg.CheckpointEvery = checkpointEvery
	if n.store == nil {
		cfg.CheckpointEvery = math.MaxInt // nothing is kept
	}
	log, err := n.openLog(ctx)
	if err != nil {
		return err
	}
	n.builder, err = builder.Open(ctx, cfg, log, rollup, seen{n.jam, n})
	return err
}

// noLog is the log of a node without a data directory. It stores nothing.
type noLog struct{}

// Append implements builder.Log.
func (noLog) Append(...[]byte) error { return nil }

// Replace implements builder.Log.
func (noLog) Replace(...[]byte) error { return nil }

// Replay implements builder.Log.
func (noLog) Replay(func([]byte) error) error { return nil }

// Accounts returns the development accounts that have funds at the start.
func (n *Node) Accounts() []devkeys.Account { return n.accounts }

// Run runs the node until ctx ends. It then stops the node's goroutines and closes the
// database. Run may be called only once. It returns early with an error if it can no
// longer follow the JAM chain, or if the disk has failed. If the disk has failed, the
// database stays open, so that clients can still read the node.
func (n *Node) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	parts := []func(context.Context) error{n.jam.Run, n.untilLeft(n.runBuilder), n.untilLeft(n.followBuilder)}
	if n.Clustered() {
		parts = append(parts, n.followJAM)
	}
	for _, part := range parts {
		group.Go(func() error { return part(running) })
	}
	err := errors.Join(group.Wait(), n.closeLog())
	n.jam.Close()
	if failure := n.store.Err(); failure != nil {
		return failure // and blocks can still be read
	}
	if err := n.store.Close(); err != nil {
		return fmt.Errorf("node: close database: %w", err)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Drain waits until every block is final and the pool has no executable transaction. It
// returns earlier if ctx or Run ends.
func (n *Node) Drain(ctx context.Context) error {
	return n.builder.Drain(ctx, func() bool { return n.PoolStats().Pending > 0 })
}
