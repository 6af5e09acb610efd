package evmrollup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/store"
)

// A new machine starts from an export: it has all blocks and the last state, and goes on.
// A second one that starts from the same file comes to the same roots.
func TestExport(t *testing.T) {
	_, r, made := chainOnDisk(t, 30)
	path := filepath.Join(t.TempDir(), "export")
	require.ErrorContains(t, r.Export(t.Context(), path), "drain", "the last blocks are not final")
	for _, b := range made[27:] {
		require.NoError(t, r.Final(t.Context(), builder.Block[*Block]{Number: b.NumberU64(), Root: b.Root(), Body: b}))
	}
	require.NoError(t, r.Export(t.Context(), path))

	next := pay(0, 1, 1)
	var hashes []*Block
	for range 2 {
		cfg := testConfig()
		cfg.Ledger, cfg.States = store.NewKeys(), store.NewKeys()
		c, err := New(cfg)
		require.NoError(t, err)
		require.NoError(t, c.Import(t.Context(), path))

		again := onDisk(t, cfg, nil)
		require.EqualValues(t, 30, again.Origin())
		require.Equal(t, r.Root(), again.Root())
		same(t, again.Chain, made)
		require.NoError(t, again.SendTransaction(next))
		require.NoError(t, again.Apply(t.Context(), again.propose(t)))
		hashes = append(hashes, again.Head())
		require.ErrorIs(t, again.Import(t.Context(), path), ledger.ErrImport, "it is not empty")
	}
	require.EqualValues(t, 31, hashes[0].NumberU64())
	require.Equal(t, hashes[0].Root(), hashes[1].Root())
}

// An export has every transaction of the pool: those that can run, those that cannot pay the
// base fee, and those behind a gap. They are in the log of the new directory after its first
// start, also if that start is interrupted, and no later start adds them again.
func TestExportHasThePool(t *testing.T) {
	_, r, made := chainOnDisk(t, 10)
	for _, b := range made[7:] {
		require.NoError(t, r.Final(t.Context(), builder.Block[*Block]{Number: b.NumberU64(), Root: b.Root(), Body: b}))
	}
	key, _ := user(0)
	poor := types.MustSignNewTx(key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: 1, GasTipCap: common.Big1, GasFeeCap: big.NewInt(params.GWei / 100), Gas: 21_000, To: &common.Address{1},
	})
	gap := pay(1, 9, 1)
	all := []*types.Transaction{pay(2, 1, 1), poor, gap}
	for _, tx := range all {
		require.NoError(t, r.SendTransaction(tx))
	}
	s := r.PoolStats()
	require.Equal(t, []int{1, 1, 1}, []int{s.Pending, s.Parked, s.Queued})
	path := filepath.Join(t.TempDir(), "export")
	require.NoError(t, r.Export(t.Context(), path))

	cfg := testConfig()
	cfg.Ledger, cfg.States = store.NewKeys(), store.NewKeys()
	c, err := New(cfg)
	require.NoError(t, err)
	require.NoError(t, c.Import(t.Context(), path))
	var log [][]byte
	start := func(fail bool) *Chain {
		c, err := New(cfg)
		require.NoError(t, err)
		b, err := c.Rollup()
		require.NoError(t, err)
		for _, record := range log {
			require.NoError(t, b.(*rollup).ReplayChange(t.Context(), record))
		}
		err = b.(*rollup).Recovered(t.Context(), func() error {
			if fail {
				return errors.New("the process is killed")
			}
			log = append(log, b.TakeChanges()...)
			return nil
		})
		require.Equal(t, fail, err != nil)
		return c
	}
	start(true)
	for range 2 {
		c := start(false)
		require.NoError(t, c.CheckPool())
		have := c.PoolStats()
		require.Equal(t, []int{1, 1, 1}, []int{have.Pending, have.Parked, have.Queued})
		for _, tx := range all {
			_, known := c.Pooled(tx.Hash())
			require.True(t, known)
		}
	}
	c = start(false)
	require.NoError(t, c.RemovePooled(poor.Hash()))
	_, known := start(false).Pooled(poor.Hash())
	require.False(t, known, "it comes back from the import")
}

// An export of version 1, which has no pool, can be imported.
func TestImportOfVersion1(t *testing.T) {
	_, r, made := chainOnDisk(t, 10)
	for _, b := range made[7:] {
		require.NoError(t, r.Final(t.Context(), builder.Block[*Block]{Number: b.NumberU64(), Root: b.Root(), Body: b}))
	}
	path := filepath.Join(t.TempDir(), "export")
	require.NoError(t, r.Export(t.Context(), path))
	old := filepath.Join(t.TempDir(), "old")
	require.NoError(t, fillExport(old, func(add func(kind byte, body []byte) error) error {
		return readExport(path, func(kind byte, body []byte) error {
			switch kind {
			case exportHead:
				body = bytes.Replace(body, []byte(`"Version":2`), []byte(`"Version":1`), 1)
			case exportPool:
				return nil
			}
			return add(kind, body)
		})
	}))
	cfg := testConfig()
	cfg.Ledger, cfg.States = store.NewKeys(), store.NewKeys()
	c, err := New(cfg)
	require.NoError(t, err)
	require.NoError(t, c.Import(t.Context(), old))
	again := onDisk(t, cfg, nil)
	require.Equal(t, r.Root(), again.Root())
	require.Zero(t, again.PoolStats().Size())
}

// unreadable is a disk that cannot read one key after New.
type unreadable struct {
	*store.Keys
	key string
}

func (d *unreadable) Get(key []byte) ([]byte, error) {
	if string(key) == d.key {
		return nil, errors.New("table 000026 (checksum mismatch at 4/5)")
	}
	return d.Keys.Get(key)
}

// The export of a damaged ledger fails with an error that has the reason of the disk.
func TestExportOfDamagedLedger(t *testing.T) {
	cfg := testConfig()
	disk := &unreadable{Keys: store.NewKeys()}
	cfg.Ledger, cfg.States = disk, store.NewKeys()
	r := onDisk(t, cfg, nil)
	made := r.grow(t, 0, 100)
	for _, b := range made[97:] {
		require.NoError(t, r.Final(t.Context(), builder.Block[*Block]{Number: b.NumberU64(), Root: b.Root(), Body: b}))
	}
	disk.key = "b\x00\x00\x00\x00\x00\x00\x00\x05" // block 5
	dir := t.TempDir()
	err := r.Export(t.Context(), filepath.Join(dir, "export"))
	require.ErrorIs(t, err, ledger.ErrDamaged)
	require.ErrorContains(t, err, "table 000026")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// An export never changes a file that exists, and leaves no part of a file after an error.
func TestExportKeepsFiles(t *testing.T) {
	_, r, made := chainOnDisk(t, 10)
	dir := t.TempDir()
	path := filepath.Join(dir, "export")
	for _, b := range made[7:] {
		require.NoError(t, r.Final(t.Context(), builder.Block[*Block]{Number: b.NumberU64(), Root: b.Root(), Body: b}))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, r.Export(ended, path), context.Canceled)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)

	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	require.ErrorIs(t, r.Export(t.Context(), path), fs.ErrExist)
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "precious", string(raw))
}

// An import reads a file that cannot be written to. A file that is no export, or a part of
// one, stays as it is.
func TestImportKeepsFiles(t *testing.T) {
	_, r, made := chainOnDisk(t, 10)
	path := filepath.Join(t.TempDir(), "export")
	for _, b := range made[7:] {
		require.NoError(t, r.Final(t.Context(), builder.Block[*Block]{Number: b.NumberU64(), Root: b.Root(), Body: b}))
	}
	require.NoError(t, r.Export(t.Context(), path))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	attempt := func(content []byte) error {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, content, 0o400))
		cfg := testConfig()
		cfg.Ledger, cfg.States = store.NewKeys(), store.NewKeys()
		c, err := New(cfg)
		require.NoError(t, err)
		checked, err := CheckExport(path), c.Import(t.Context(), path)
		require.Equal(t, checked, err)
		have, failed := os.ReadFile(path)
		require.NoError(t, failed)
		require.True(t, bytes.Equal(content, have))
		return err
	}
	require.NoError(t, attempt(raw))
	require.ErrorIs(t, attempt([]byte("a photo, of which there is no other copy")), ErrExport)
	err = attempt(raw[:len(raw)-1])
	require.ErrorIs(t, err, ErrExport)
	require.ErrorContains(t, err, fmt.Sprintf("at byte 0 of %d", len(raw)-1), "a small export is one frame")
}

// An export that is cut or of another chain is refused, and the directory cannot be used then.
func TestImportIsRefused(t *testing.T) {
	_, r, made := chainOnDisk(t, 10)
	for _, b := range made[7:] {
		require.NoError(t, r.Final(t.Context(), builder.Block[*Block]{Number: b.NumberU64(), Root: b.Root(), Body: b}))
	}
	path := filepath.Join(t.TempDir(), "export")
	require.NoError(t, r.Export(t.Context(), path))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	cfg := testConfig()
	attempt := func(name string, cfg Config) error {
		cfg.Ledger, cfg.States = store.NewKeys(), store.NewKeys()
		c, err := New(cfg)
		require.NoError(t, err)
		if err := c.Import(t.Context(), name); err != nil {
			if _, again := New(cfg); again != nil {
				require.ErrorIs(t, again, ledger.ErrImport)
			}
			return err
		}
		return nil
	}
	require.NoError(t, attempt(path, cfg))
	require.Error(t, attempt(path+" of another name", cfg))
	require.NoFileExists(t, path+" of another name")
	other := cfg
	other.Genesis = nil
	require.ErrorIs(t, attempt(path, other), ErrExport)
	for _, size := range []int{0, 100, len(raw) / 2, len(raw) - 1} {
		cut := filepath.Join(t.TempDir(), "cut")
		require.NoError(t, os.WriteFile(cut, raw[:size], 0o600))
		require.ErrorIs(t, attempt(cut, cfg), ErrExport, "%d of %d bytes", size, len(raw))
	}
}
