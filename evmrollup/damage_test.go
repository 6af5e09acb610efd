package evmrollup

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/internal/repeat"
	"github.com/jamq/jamq/pebble/pebbledb"
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
		require.Equal(t, block, chain.BlockByHash(hash), "block %d", i)
		for j, tx := range block.Transactions() {
			at, index, known := chain.Transaction(tx.Hash())
			require.True(t, known && at.Hash() == hash && index == j, "transaction %d of block %d", j, i)
		}
		for _, l := range block.Logs() {
			number := block.NumberU64()
			for _, topics := range [][][]common.Hash{nil, {l.Topics}} {
				found := slices.Collect(chain.Logs(number, number, []common.Address{l.Address}, topics))
				require.Equal(t, []uint64{number}, found)
			}
		}
	}
	return nil
}

// compact lets Pebble read and write all tables of a data directory, as it does gradually
// while a node works. It returns an error if Pebble finds damage.
func compact(dir string) error {
	db, err := pebbledb.Open(filepath.Join(dir, "db"), nil)
	if err != nil {
		return err
	}
	return errors.Join(db.Pebble().Compact([]byte{0}, []byte{0xff}, false), db.Close())
}

func gasOf(b *Block) (sum uint64) {
	for _, r := range b.Receipts {
		sum += r.GasUsed
	}
	return sum
}

// A flipped byte in any file of a data directory is found when the file is read, also by a
// compaction. It never becomes a wrong answer. The error names a damaged table.
func TestFlippedByte(t *testing.T) {
	c := newLongChain(t)
	for range 2 { // two tables, in the deep stage with an index larger than Pebble's default
		c.grow(repeat.Times(1_000, 7_000))
		c.restart()
	}
	c.grow(700)
	checkpoint, err := c.r.Checkpoint(t.Context())
	require.NoError(t, err)
	var hashes []common.Hash
	for number := uint64(0); number <= c.r.Head().NumberU64(); number++ {
		hashes = append(hashes, c.r.BlockByNumber(number).Hash())
	}
	c.close()
	require.NoError(t, readAll(t, c.dir, c.cfg, checkpoint, hashes))
	names := files(t, c.dir)
	tables := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return filepath.Ext(name) != ".sst" })
	require.NotEmpty(t, tables)

	random := rand.New(rand.NewPCG(repeat.First(), 1))
	found := 0
	for i := range repeat.Times(4, 150) {
		dir := filepath.Join(t.TempDir(), "copy")
		require.NoError(t, os.CopyFS(dir, os.DirFS(c.dir)))
		from := [][]string{tables, names}[i%2]
		name := from[random.IntN(len(from))]
		raw, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		at := random.IntN(len(raw))
		raw[at] ^= byte(1 + random.IntN(255))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
		where := fmt.Sprintf("%s, byte %d of %d", name, at, len(raw))
		errs := []error{readAll(t, dir, c.cfg, checkpoint, hashes), compact(dir), readAll(t, dir, c.cfg, checkpoint, hashes)}
		t.Logf("%s: %v", where, errs)
		if errors.Join(errs...) != nil {
			found++
		}
		if filepath.Ext(name) == ".sst" {
			require.ErrorContains(t, errors.Join(errs...), strings.TrimSuffix(filepath.Base(name), ".sst"), where)
		}
		require.NoError(t, os.RemoveAll(dir))
	}
	require.Positive(t, found)
}
