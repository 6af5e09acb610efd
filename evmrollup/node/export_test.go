package node

import (
	"context"
	"io/fs"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/submit/codec"
)

// inDir returns the configuration of a node with a data directory, whose slots are short.
func inDir(dir string) Config {
	cfg := DefaultConfig(jamq.Tiny(), 20*time.Millisecond, 1)
	cfg.DataDir = dir
	return cfg
}

// during runs a node in a directory while f works with it.
func during(t *testing.T, dir string, f func(*Node)) {
	t.Helper()
	n, err := New(inDir(dir))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, wait.Receive(t, ended, "the node ends"))
	}()
	f(n)
}

// transfer is a transaction of an account of the node.
func transfer(t *testing.T, n *Node, account int, nonce uint64, price int64) *types.Transaction {
	t.Helper()
	tx, err := types.SignNewTx(n.Accounts()[account].Key, types.LatestSignerForChainID(n.ChainConfig().ChainID), &types.DynamicFeeTx{
		ChainID: n.ChainConfig().ChainID, Nonce: nonce, GasTipCap: common.Big1, GasFeeCap: big.NewInt(price), Gas: 21_000, To: &common.Address{1}, Value: common.Big1,
	})
	require.NoError(t, err)
	return tx
}

const enough = 20 * params.GWei // a price that every block takes

// grow makes final blocks with transactions of an account.
func grow(t *testing.T, n *Node) {
	t.Helper()
	for nonce := range uint64(8) {
		require.NoError(t, n.SendTransaction(transfer(t, n, 0, nonce, enough)))
	}
	require.NoError(t, n.Drain(wait.Context(t)))
	require.Positive(t, n.Head().NumberU64())
}

// content returns the files of a directory.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(raw)
		return err
	}))
	return all
}

// A directory in which a node has run is not imported into, although it has no block, and
// does not change. An export needs a directory.
func TestImportNeedsANewDirectory(t *testing.T) {
	dir := t.TempDir()
	from, to, file := filepath.Join(dir, "from"), filepath.Join(dir, "to"), filepath.Join(dir, "file")
	require.ErrorIs(t, Export(t.Context(), inDir(from), file), fs.ErrNotExist)
	require.NoDirExists(t, from)
	var last *Block
	during(t, from, func(n *Node) {
		grow(t, n)
		last = n.Head()
		require.NoError(t, n.SendTransaction(transfer(t, n, 5, 40, enough)))
	})
	require.NoError(t, Export(t.Context(), inDir(from), file))

	during(t, to, func(n *Node) { require.NoError(t, n.SendTransaction(transfer(t, n, 5, 40, enough))) })
	before := content(t, to)
	require.ErrorIs(t, Import(t.Context(), inDir(to), file), ledger.ErrImport)
	require.Equal(t, before, content(t, to))

	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	require.NoError(t, Import(t.Context(), inDir(empty), file))
	for range 2 {
		during(t, empty, func(n *Node) {
			require.Equal(t, last.Hash(), n.Head().Hash())
			_, queued := n.PoolCounts()
			require.Equal(t, 1, queued, "a transaction behind a gap is moved too")
		})
	}
}

// A directory of one service, version of the Gray Paper, JAM chain or length of a slot is
// refused with another one, for a run and for an export, and does not change.
func TestOtherSettingsAreRefused(t *testing.T) {
	chain := jamtest.DefaultConfig(jamq.Tiny(), 1)
	chain.Spec.SlotDuration = 20 * time.Millisecond
	remote, err := jip2server.New(jip2server.DefaultConfig(chain))
	require.NoError(t, err)
	for range 4 {
		_, err := remote.Step()
		require.NoError(t, err)
	}
	web := httptest.NewServer(remote)
	defer web.Close()

	dir := filepath.Join(t.TempDir(), "data")
	var last *Block
	during(t, dir, func(n *Node) {
		grow(t, n)
		last = n.Head()
	})
	before := content(t, dir)
	for name, change := range map[string]func(*Config){
		"service":    func(c *Config) { c.Service = 7 },
		"Gray Paper": func(c *Config) { c.Version = codec.V080 },
		"JAM chain":  func(c *Config) { c.JAMURL = "ws" + strings.TrimPrefix(web.URL, "http") },
	} {
		cfg := inDir(dir)
		change(&cfg)
		_, err := New(cfg)
		require.ErrorIs(t, err, store.ErrSettings)
		require.ErrorContains(t, err, name+" is ")
		require.ErrorContains(t, err, dir)
		require.ErrorIs(t, Export(t.Context(), cfg, filepath.Join(t.TempDir(), "file")), store.ErrSettings)
		require.Equal(t, before, content(t, dir))
	}
	for name, spec := range map[string]jamq.ChainSpec{"slot": jamq.Tiny(), "validators": jamq.Full()} {
		cfg := DefaultConfig(spec, 20*time.Millisecond, 1)
		if cfg.DataDir = dir; name == "slot" {
			cfg.Spec.SlotDuration *= 2
		}
		_, err := New(cfg)
		require.ErrorIs(t, err, store.ErrSettings)
		require.ErrorContains(t, err, name+" is ")
	}
	during(t, dir, func(n *Node) { require.Equal(t, last.Hash(), n.Head().Hash()) })
}

// After an import that fails, or that is interrupted, the next one works. A node does not start
// in between.
func TestImportAfterAFailedOne(t *testing.T) {
	dir := t.TempDir()
	from, to, file := filepath.Join(dir, "from"), filepath.Join(dir, "to"), filepath.Join(dir, "file")
	var last *Block
	during(t, from, func(n *Node) {
		grow(t, n)
		last = n.Head()
	})
	require.NoError(t, Export(t.Context(), inDir(from), file))

	other := inDir(to)
	other.ChainID = big.NewInt(5)
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	for _, target := range []string{to, empty} {
		other.DataDir = target
		err := Import(t.Context(), other, file)
		require.ErrorIs(t, err, evmrollup.ErrExport)
		require.ErrorContains(t, err, "it is of another chain")
	}
	require.NoDirExists(t, to)
	require.Empty(t, content(t, empty))
	require.DirExists(t, empty)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Import(ended, inDir(to), file), context.Canceled)
	require.NoDirExists(t, to)

	require.NoError(t, beginImport(to))
	require.NoError(t, os.Mkdir(filepath.Join(to, "db"), 0o700)) // and the process dies
	_, err := New(inDir(to))
	require.ErrorIs(t, err, ledger.ErrImport)
	require.NoError(t, Import(t.Context(), inDir(to), file))
	during(t, to, func(n *Node) { require.Equal(t, last.Hash(), n.Head().Hash()) })
	require.ErrorIs(t, Import(t.Context(), inDir(to), file), ledger.ErrImport)
}
