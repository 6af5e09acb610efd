package evmrollup

import (
	"crypto/ecdsa"
	"flag"
	"io/fs"
	"log/slog"
	"math/big"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/store"
)

var sizes = flag.Int("chain.transactions", 2_000, "number of transactions in the chain of TestK3LongChain")

// longChain is a rollup with many transactions on a real disk.
type longChain struct {
	t     *testing.T
	dir   string
	cfg   Config
	store *store.Store
	r     *rollup
	keys  []*ecdsa.PrivateKey
	sent  []uint64
	logs  common.Address // a contract that logs in some of the blocks
	disk  *counting
}

// counting counts the values that are read from a ledger's disk.
type counting struct {
	ledger.Disk
	reads atomic.Int64
}

// Get implements ledger.Disk.
func (c *counting) Get(key []byte) ([]byte, error) {
	c.reads.Add(1)
	return c.Disk.Get(key)
}

const (
	longSenders = 700
	longBlock   = 700 // half the gas of a block, so that the base fee does not rise
	// The recipients are in the genesis, so that the state of a long chain has the size of
	// that of a short one, and a restart shows what the chain costs.
	longRecipients = 50_000
)

func recipient(i int) common.Address {
	return common.BigToAddress(big.NewInt(int64(0x10000 + i%longRecipients)))
}

func newLongChain(t *testing.T) *longChain {
	c := &longChain{t: t, dir: t.TempDir(), cfg: testConfig(), sent: make([]uint64, longSenders)}
	c.cfg.MaxTxsPerBlock, c.cfg.MaxPool, c.cfg.RetainStates = longBlock, 4*longBlock, 128
	for i := range longSenders {
		key, address := user(i)
		c.keys = append(c.keys, key)
		c.cfg.Genesis[address] = types.Account{Balance: new(big.Int).Mul(big.NewInt(1000), big.NewInt(params.Ether))}
	}
	for i := range longRecipients {
		c.cfg.Genesis[recipient(i)] = types.Account{Balance: common.Big1}
	}
	// Its code logs the topic 7.
	c.logs = common.Address{0xcc}
	c.cfg.Genesis[c.logs] = types.Account{Code: []byte{0x60, 7, 0x5f, 0x5f, 0xa1, 0x00}, Balance: new(big.Int)}
	c.open(nil)
	return c
}

// open opens the store and the rollup, from a checkpoint unless it is nil.
func (c *longChain) open(checkpoint [][]byte) {
	var err error
	c.store, err = store.Open(c.dir, slog.New(slog.DiscardHandler))
	require.NoError(c.t, err)
	c.disk = &counting{Disk: c.store.Ledger}
	c.cfg.Ledger, c.cfg.States = c.disk, c.store.States
	chain, err := New(c.cfg)
	require.NoError(c.t, err)
	b, err := chain.Rollup()
	require.NoError(c.t, err)
	c.r = b.(*rollup)
	if checkpoint != nil {
		require.NoError(c.t, c.r.Restore(c.t.Context(), checkpoint))
	}
	require.NoError(c.t, c.r.Recovered(c.t.Context(), keepNothing))
}

func (c *longChain) close() {
	require.NoError(c.t, c.store.Close())
}

// grow makes final blocks with the given number of transactions.
func (c *longChain) grow(transactions int) {
	signer := types.LatestSignerForChainID(chainID)
	for made := 0; made < transactions; {
		n := min(longBlock, transactions-made)
		txs := make([]*types.Transaction, n)
		var signing sync.WaitGroup
		for part := range 2 {
			signing.Go(func() {
				for i := part; i < n; i += 2 {
					sender := i % longSenders
					to := recipient(made + i)
					if i == 0 && made/longBlock%10 == 0 {
						to = c.logs
					}
					txs[i] = types.MustSignNewTx(c.keys[sender], signer, &types.DynamicFeeTx{
						ChainID: chainID, Nonce: c.sent[sender] + uint64(i/longSenders), GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei),
						Gas: 30_000, To: &to, Value: common.Big1,
					})
				}
			})
		}
		signing.Wait()
		for i := range n {
			c.sent[i%longSenders]++
		}
		for _, err := range c.r.pool.AddAll(txs) {
			require.NoError(c.t, err)
		}
		block := c.r.propose(c.t)
		require.Len(c.t, block.Body.Transactions(), n)
		require.NoError(c.t, c.r.Apply(c.t.Context(), block))
		block.Progress = builder.Progress{State: bundlequeue.Finalized, Version: 1}
		require.NoError(c.t, c.r.Final(c.t.Context(), block))
		made += n
	}
}

// restart opens the chain again from a checkpoint, until it answers from the newest state.
// It returns the time that it takes, and the number of values that it reads from the
// ledger.
func (c *longChain) restart() (duration time.Duration, reads int64) {
	checkpoint, err := c.r.Checkpoint(c.t.Context())
	require.NoError(c.t, err)
	c.close()
	runtime.GC()
	began := time.Now()
	c.open(checkpoint)
	view, err := c.r.StateAt(c.r.Head())
	require.NoError(c.t, err)
	_, address := user(0)
	require.Equal(c.t, c.sent[0], view.Account(address).Nonce)
	return time.Since(began), c.disk.reads.Load()
}

func (c *longChain) bytes() (sum int64) {
	require.NoError(c.t, filepath.WalkDir(c.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	}))
	return sum
}

// heap returns the bytes of memory that are in use.
func heap() uint64 {
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}

// A restart of a long chain reads its state, and not its blocks. The test logs figures for
// the documents; the flag -chain.transactions makes the chain longer.
func TestK3LongChain(t *testing.T) {
	c := newLongChain(t)
	c.grow(*sizes / 100)
	short, few := c.restart()
	c.grow(*sizes/2 - *sizes/100)
	half := heap()
	c.grow(*sizes - *sizes/2)
	whole := heap()
	long, reads := c.restart()
	require.Equal(t, few, reads, "a longer chain costs more reads")
	defer c.close()
	head := c.r.Head().NumberU64()
	began, found := time.Now(), 0
	for number := range c.r.Logs(1, head, []common.Address{c.logs}, nil) {
		require.NotNil(t, c.r.BlockByNumber(number))
		found++
	}
	t.Logf("%d transactions in %d blocks: restart %v, and %v at a hundredth; %d MB in memory, %d at half, %d bytes on disk per transaction; %d blocks with logs in %v",
		*sizes, head, long, short, whole>>20, half>>20, c.bytes()/int64(*sizes), found, time.Since(began))
	require.Positive(t, found)
	sender := c.r.BlockByNumber(1).Transactions()[0]
	at, index, known := c.r.Transaction(sender.Hash())
	require.True(t, known)
	require.Zero(t, index)
	require.EqualValues(t, 1, at.NumberU64())
}
