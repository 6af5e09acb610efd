package evmrollup

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/examples/refnode/store"
	"github.com/jamq/jamq/internal/repeat"
)

// files returns the names of the files in a directory with bytes, relative to it.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() == 0 {
			return err
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, name)
		return err
	}))
	return names
}

// readAll opens a copy of a chain and compares everything that it has. A difference without
// an error is a failure of the test.
func readAll(t *testing.T, dir string, cfg Config, checkpoint [][]byte, hashes []common.Hash) (err error) {
	defer func() {
		if p := recover(); p != nil {
			cause, ok := p.(error)
			require.True(t, ok, "%v", p)
			err = cause
		}
	}()
	s, err := store.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	cfg.Ledger, cfg.States = s.Ledger, s.States
	chain, err := New(cfg)
	if err != nil {
		return err
	}
	b, err := chain.Rollup()
	if err != nil {
		return err
	}
	if err := b.(*rollup).Restore(t.Context(), checkpoint); err != nil {
		return err
	}
	for i, hash := range hashes {
		block := chain.BlockByNumber(uint64(i))
		require.NotNil(t, block, "block %d", i)
		require.Equal(t, hash, block.Hash())
		require.Equal(t, block.GasUsed(), gasOf(block))
	}
	return nil
}

func gasOf(b *Block) (sum uint64) {
	for _, r := range b.Receipts {
		sum += r.GasUsed
	}
	return sum
}

// A flipped byte in any file of a data directory is found when the file is read. It never
// becomes a wrong answer.
func TestFlippedByte(t *testing.T) {
	c := newLongChain(t)
	c.grow(3000)
	c.restart() // whose tables are on disk
	c.grow(700)
	checkpoint, err := c.r.Checkpoint(t.Context())
	require.NoError(t, err)
	var hashes []common.Hash
	for number := uint64(0); number <= c.r.Head().NumberU64(); number++ {
		hashes = append(hashes, c.r.BlockByNumber(number).Hash())
	}
	c.close()
	require.NoError(t, readAll(t, c.dir, c.cfg, checkpoint, hashes))

	random := rand.New(rand.NewPCG(repeat.First(), 1))
	found := 0
	for range repeat.Times(8, 300) {
		dir := filepath.Join(t.TempDir(), "copy")
		require.NoError(t, os.CopyFS(dir, os.DirFS(c.dir)))
		names := files(t, dir)
		name := names[random.IntN(len(names))]
		raw, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		at := random.IntN(len(raw))
		raw[at] ^= byte(1 + random.IntN(255))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
		where := fmt.Sprintf("%s, byte %d of %d", name, at, len(raw))
		if err := readAll(t, dir, c.cfg, checkpoint, hashes); err != nil {
			found++
			t.Logf("%s: %v", where, err)
		} else {
			t.Logf("%s: no difference", where)
		}
		require.NoError(t, os.RemoveAll(dir))
	}
	require.Positive(t, found)
}
