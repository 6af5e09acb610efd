package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/internal/wait"
)

// sizeOf returns the size of a directory in bytes while files come and go.
func sizeOf(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is gone
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// copyLive copies a directory while a process writes to it, as cp -r does: it lists the files
// first, and then copies one after the other. Files that are gone by then are left out.
func copyLive(t *testing.T, to, from string, random *rand.Rand) {
	var names []string
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		if reached := sizeOf(from) + 30_000; random.IntN(2) == 0 {
			wait.Until(t, func() bool { return sizeOf(from) > reached }, "the node writes")
		}
		raw, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		target := filepath.Join(to, strings.TrimPrefix(name, from))
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o700))
		require.NoError(t, os.WriteFile(target, raw, 0o600))
	}
}

// openCopy opens a data directory, checks all of its blocks, and returns the hashes of the
// final ones.
func openCopy(t *testing.T, dir string) (final []common.Hash, err error) {
	o, err := parse([]string{"-datadir", dir, "-slot", "50ms", "-bundle", "20"}, io.Discard)
	require.NoError(t, err)
	cfg, err := o.config(io.Discard)
	require.NoError(t, err)
	n, err := node.New(cfg.Config)
	if err != nil {
		return nil, err
	}
	defer func() {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, n.Run(ended), "it closes the directory")
	}()
	parent := n.BlockByNumber(0)
	for number := uint64(1); number <= n.Head().NumberU64(); number++ {
		b := n.BlockByNumber(number)
		require.Equal(t, parent.Hash(), b.ParentHash())
		require.Equal(t, b.TxHash(), types.DeriveSha(b.Transactions(), trie.NewStackTrie(nil)))
		require.Equal(t, b.ReceiptHash(), types.DeriveSha(b.Receipts, trie.NewStackTrie(nil)))
		for i, tx := range b.Transactions() {
			at, index, known := n.Transaction(tx.Hash())
			require.True(t, known && at.Hash() == b.Hash() && index == i, "transaction %d of block %d", i, number)
		}
		parent = b
	}
	view, err := n.StateAt(parent)
	require.NoError(t, err)
	root, err := view.Root()
	require.NoError(t, err)
	require.Equal(t, parent.Root(), root)
	for number := range n.Resolve(rpc.FinalizedBlockNumber).NumberU64() + 1 {
		final = append(final, n.BlockByNumber(number).Hash())
	}
	return final, nil
}

// A copy of the data directory of a working node, whose files are of different moments, opens
// and is right, or is refused with an error that names the directory or one of its files.
func TestCopyOfWorkingNode(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	cmd := program(t, "refnode", "-datadir", data, "-load", "400", "-load.for", "1h", "-load.accounts", "20", "-slot", "50ms", "-bundle", "20", "-http", "127.0.0.1:0")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	random := rand.New(rand.NewPCG(repeat.First(), 2))
	var copies []string
	for i := range repeat.Times(8, 40) {
		reached := int64(i+1) * 300_000
		wait.Until(t, func() bool { return sizeOf(data) > reached }, "the node writes")
		copies = append(copies, filepath.Join(dir, fmt.Sprint(i)))
		copyLive(t, copies[i], data, random)
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed

	truth, err := openCopy(t, data)
	require.NoError(t, err)
	opened := 0
	for _, c := range copies {
		final, err := openCopy(t, c)
		if err != nil {
			t.Log("refused:", err)
			require.ErrorContains(t, err, c)
			continue
		}
		opened++
		require.LessOrEqual(t, len(final), len(truth))
		require.Equal(t, truth[:len(final)], final)
	}
	t.Logf("%d of %d copies opened, and the last one has %d final blocks", opened, len(copies), len(truth)-1)
}
