package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/examples/refnode/devkeys"
	"github.com/jamq/jamq/examples/refnode/live"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/evm"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/txpool"
)

// numAccounts is the number of funded development accounts, with genesisEther
// each.
const (
	numAccounts   = 10
	genesisEther  = 10_000
	blockGasLimit = 30_000_000
)

// Node is a rollup node. It is safe for concurrent use.
type Node struct {
	cfg      Config
	log      *slog.Logger
	chain    *params.ChainConfig
	accounts []devkeys.Account
	states   *statedb.Store
	ledger   *ledger
	headLog  *headLog
	pool     *txpool.Pool
	limits   Limits
	jam      jamChain
	runner   *submit.Runner[Bundle]
	store    *store // nil without a data directory
	codec    *codec.Codec
	live     *live.Hub

	// produceNow asks the producer to check the pool. slotBegan tells it that a
	// slot began.
	produceNow, slotBegan chan struct{}

	moving      sync.RWMutex  // held while failed blocks go from the ledger to the pool
	replaced    atomic.Uint64 // executed blocks thrown away
	reconciling bool          // of the producer: the queue may lack blocks that were recovered
	// unwritten is the first removed block that is not recorded on disk, 0 for
	// none. It belongs to the producer.
	unwritten uint64

	mu       sync.Mutex
	tracker  *canonical.Tracker
	failed   []Bundle // handed back by the queue, for the producer to take
	service  service
	finished chan struct{} // closed when the goroutines of Run have ended
	started  chan struct{} // closed when the runner runs
}

// New returns a node, which [Node.Run] starts. If Config.DataDir has the data
// of an earlier run, the node continues from there.
func New(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, log: cfg.Logger, chain: evm.ChainConfig(cfg.ChainID),
		reconciling: true, produceNow: make(chan struct{}, 1), slotBegan: make(chan struct{}, 1),
		finished: make(chan struct{}), started: make(chan struct{}),
	}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	var err error
	// finalize discards the states that are older than RetainStates.
	states := statedb.Config{Profile: statedb.EIP7864(), Retention: statedb.KeepAll, Metrics: cfg.Metrics.States}
	if n.states, err = statedb.Open(states); err != nil {
		return nil, err
	}
	if err := n.makeGenesis(); err != nil {
		return nil, err
	}
	if err := n.openStore(); err != nil {
		return nil, err
	}
	if err := n.recover(); err != nil {
		return nil, errors.Join(err, n.store.close())
	}
	return n, nil
}

// recover restores the state of the data directory and connects to the JAM
// chain.
func (n *Node) recover() error {
	undone, err := n.recoverBlocks()
	if err != nil {
		return err
	}
	if err := n.makePool(); err != nil {
		return err
	}
	if err := n.recoverPool(undone); err != nil {
		return err
	}
	if err := n.makeJAM(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.logHeads()
	return nil
}

// makeGenesis funds the development accounts and seals block 0.
func (n *Node) makeGenesis() (err error) {
	if n.accounts, err = devkeys.Derive(devkeys.Mnemonic, numAccounts); err != nil {
		return err
	}
	alloc := make(types.GenesisAlloc, numAccounts)
	for _, a := range n.accounts {
		alloc[a.Address] = types.Account{Balance: new(big.Int).Mul(big.NewInt(genesisEther), big.NewInt(params.Ether))}
	}
	view, err := n.states.View(statedb.EmptyRoot)
	if err != nil {
		return err
	}
	if err := evm.Genesis(view, alloc); err != nil {
		return err
	}
	header := newHeader()
	if header.Root, err = view.Commit(); err != nil {
		return err
	}
	header.Number = new(big.Int)
	header.Extra = fmt.Appendf(nil, "jamq %v", n.cfg.ChainID) // makes genesis hashes differ
	header.Time = uint64(jamq.CommonEra().Unix())
	header.BaseFee = big.NewInt(params.GWei)
	genesis := &Block{Block: types.NewBlock(header, &types.Body{Withdrawals: []*types.Withdrawal{}}, nil, trie.NewStackTrie(nil))}
	n.ledger, n.headLog = newLedger(genesis), newHeadLog(genesis)
	n.tracker = canonical.New(headOf(genesis), ^uint64(0)>>1)
	if err := n.states.Pin(header.Root); err != nil {
		return err
	}
	return n.states.SetCanonical(header.Root)
}

func headOf(b *Block) canonical.Head {
	return canonical.Head{Number: b.NumberU64(), Hash: b.Hash(), Root: b.Root(), Commitment: b.Hash()}
}

func (n *Node) makePool() (err error) {
	// The base fee of the blocks is the market. A floor in the pool would be a
	// second price that no wallet knows, because wallets compute their price
	// from the base fee.
	cfg := txpool.DefaultConfigEIP1559(n.cfg.ChainID)
	cfg.BlockGasLimit = blockGasLimit
	cfg.MaxPending, cfg.MaxParked, cfg.MaxQueued, cfg.MaxPerSender = n.cfg.MaxPool, n.cfg.MaxPool, n.cfg.MaxPool, n.cfg.MaxPerSender
	cfg.MaxTxSize = maxTxSize
	cfg.MaxBytes = n.cfg.poolBytes()
	cfg.Logger, cfg.Metrics, cfg.Observe = n.log, n.cfg.Metrics.Pool, n.poolEvent
	if n.store != nil {
		cfg.Journal = n.store.pool
	}
	n.limits = limitsOf(&cfg)
	n.pool, err = txpool.New(cfg, poolState{n})
	return err
}

// poolState shows the accounts after the newest executed block to the pool.
type poolState struct{ *Node }

// Account implements txpool.State.
func (s poolState) Account(addr common.Address) (txpool.Account, error) {
	view, err := s.states.View(s.ledger.head().Root())
	if err != nil {
		return txpool.Account{}, err
	}
	account := view.Account(addr)
	_, delegated := types.ParseDelegation(view.Code(account.CodeHash))
	return txpool.Account{Nonce: account.Nonce, Balance: *account.Balance, Delegated: delegated}, nil
}

// makeJAM creates the JAM chain or connects to it, and creates the runner.
func (n *Node) makeJAM() error {
	if n.cfg.JAMURL == "" {
		jam := n.cfg.JAM
		jam.Spec = n.cfg.Spec
		if n.cfg.Lab {
			jam.FinalityLag = max(jam.FinalityLag, labFinality)
		}
		chain, err := newEmbedded(jam, n.cfg.Service, n.taken)
		if err != nil {
			return err
		}
		n.jam = chain
		if err := n.useSpec(); err != nil {
			return err
		}
		n.makeLive()
		n.runner, err = submit.NewRunner(n.runnerConfig(), chain.start, packager{n}, packager{n})
		return err
	}
	chain, err := newRemote(n.cfg.JAMURL, n.cfg.Service, n.log, n.taken)
	if err != nil {
		return err
	}
	n.jam = chain
	if err = n.useSpec(); err == nil {
		n.makeLive()
		err = n.followRemote(chain)
	}
	if err != nil {
		chain.close()
	}
	return err
}

// useSpec sets the constants to those of the JAM chain.
func (n *Node) useSpec() (err error) {
	n.cfg.Spec = n.jam.spec()
	n.codec, err = codec.New(n.cfg.Version, n.cfg.Spec)
	return err
}

func (n *Node) runnerConfig() submit.Config {
	cfg := submit.DefaultConfig(n.cfg.Spec)
	cfg.Queue.FirstNumber = n.ledger.head().NumberU64() + 1
	cfg.Observe = n.observe
	cfg.CheckInvariants = true
	cfg.Logger, cfg.Metrics = n.log, n.cfg.Metrics.Runner
	return cfg
}

// followRemote creates the runner for a remote chain, which continues without
// this node. With a data directory the runner is durable too.
func (n *Node) followRemote(chain *remote) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	if n.store == nil {
		if err := chain.open(ctx, nil); err != nil {
			return err
		}
		n.runner, err = submit.NewRunner(n.runnerConfig(), chain.feed.Root(), packager{n}, packager{n})
		return err
	}
	root, err := chain.finalized(ctx) // for a queue that begins now
	if err != nil {
		return err
	}
	cfg := n.runnerConfig()
	if cfg.Queue.FirstNumber > 1 {
		// A snapshot of the queue overrides this. A new queue takes all blocks.
		cfg.Queue.FirstNumber = 1
	}
	n.runner, err = submit.OpenRunner(cfg, root, submit.Durability[Bundle]{Journal: n.store.queue, Codec: bundleCodec{n.codec}}, packager{n}, packager{n})
	if err != nil {
		return err
	}
	found := n.runner.Recovered()
	if err := chain.open(ctx, &found); err != nil {
		return err
	}
	return n.recoverHeads(found)
}

// Accounts returns the funded accounts.
func (n *Node) Accounts() []devkeys.Account { return n.accounts }

// Run runs the node until ctx ends, then ends its goroutines and closes the
// database. It may be called once. It returns early with an error if the JAM
// chain can no longer be followed.
func (n *Node) Run(ctx context.Context) error {
	defer close(n.finished)
	defer n.jam.close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := n.runner.Start(ctx); err != nil {
		return err
	}
	close(n.started)
	var workers sync.WaitGroup
	workers.Go(func() { cancel(n.jam.Follow(ctx, sink{n})) })
	workers.Go(func() { n.produce(ctx) })
	workers.Go(func() { n.live.Run(ctx) })
	<-ctx.Done()
	workers.Wait()
	n.runner.Stop()
	n.pool.Close()
	if err := n.store.close(); err != nil {
		return fmt.Errorf("node: close database: %w", err)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return nil
}

// Drain waits until the node runs, the pool has no pending transaction and every
// bundle is final, or until ctx ends.
func (n *Node) Drain(ctx context.Context) error {
	select {
	case <-n.started:
	case <-n.finished:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		if pending, _ := n.PoolCounts(); pending == 0 {
			if err := n.runner.Drain(ctx); err != nil {
				return err
			}
			if pending, _ := n.PoolCounts(); pending == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(n.cfg.Spec.SlotDuration / 4):
		}
	}
}
