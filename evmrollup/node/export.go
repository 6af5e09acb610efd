package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/evmrollup/internal/jam"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/service"
)

// Export writes the content of a data directory to a new file: all blocks, the state
// after the last block, and the pool. All blocks must be final. The error wraps
// fs.ErrNotExist if the directory does not exist.
func Export(ctx context.Context, cfg Config, path string) error {
	if _, err := os.ReadDir(cfg.DataDir); err != nil {
		return fmt.Errorf("node: export: %w", err)
	}
	n, err := New(cfg)
	if err != nil {
		return err
	}
	err = n.Chain.Export(ctx, path)
	n.jam.Close()
	return errors.Join(err, n.store.Close())
}

// Import makes a data directory from a file that Export has written. The directory must
// not exist, or must be empty. A node that uses the directory continues after the last
// block in the file. The error wraps ledger.ErrImport if the directory has files, and
// evmrollup.ErrExport if the file is not a complete export.
//
// After an error, the directory is as it was before. If the process ends during the
// import, New refuses the directory until Import is called again. The second call
// starts from the beginning.
func Import(ctx context.Context, cfg Config, path string) (err error) {
	if err := cfg.Validate(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("node: import %s: %w", path, err)
		}
	}()
	if err := errors.Join(checkEmpty(cfg.DataDir), evmrollup.CheckExport(path)); err != nil {
		return err
	}
	_, missing := os.Stat(cfg.DataDir)
	if err := beginImport(cfg.DataDir); err != nil {
		return err
	}
	err = fillDirectory(ctx, cfg, path)
	if err == nil {
		return os.Remove(filepath.Join(cfg.DataDir, importing))
	}
	err = errors.Join(err, clearImport(cfg.DataDir), os.Remove(filepath.Join(cfg.DataDir, importing)))
	if missing != nil {
		err = errors.Join(err, os.Remove(cfg.DataDir))
	}
	return err
}

// fillDirectory writes the content of an export to a new data directory.
func fillDirectory(ctx context.Context, cfg Config, path string) error {
	n, err := offline(cfg)
	if err != nil {
		return err
	}
	return errors.Join(n.Chain.Import(ctx, path), n.store.Close())
}

// offline returns a node that has opened its rollup but is not connected to JAM.
func offline(cfg Config) (n *Node, err error) {
	n = &Node{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	if n.accounts, err = devkeys.Derive(devkeys.Mnemonic, numAccounts); err != nil {
		return nil, err
	}
	if cfg.DataDir != "" {
		if n.store, err = store.Open(cfg.DataDir, n.log); err != nil {
			return nil, err
		}
	}
	if n.Chain, err = evmrollup.New(n.rollupConfig()); err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	return n, nil
}

// Genesis returns the entries of the rollup's service for the genesis state of a JAM
// chain. The service begins after block 0 or, if the data directory was imported, after
// the last imported block.
func Genesis(cfg Config) (service.State, error) {
	n, err := offline(cfg)
	if err != nil {
		return nil, err
	}
	origin := evmrollup.Header(n.BlockByNumber(n.Origin()).Block, common.Hash{})
	signer, err := service.NewSigner(cfg.Version, cfg.Key)
	if err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	genesis, err := jam.Genesis(cfg.Service, cfg.Version, signer, origin)
	if err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	entries, err := genesis.Entries()
	return entries, errors.Join(err, n.store.Close())
}

// importing is the name of a file that exists in a directory while an import runs. If
// the import is interrupted, the file shows that the other files may be deleted. The
// files of a node, on the other hand, must never be deleted.
const importing = "importing"

// beginImport creates the directory and the file that marks an import. It deletes the
// files of an earlier, interrupted import.
func beginImport(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, importing), nil, 0o600); err != nil {
		return err
	}
	return clearImport(dir)
}

// clearImport deletes the files of an import, which no node has used yet.
func clearImport(dir string) error {
	return errors.Join(os.RemoveAll(filepath.Join(dir, "db")), os.RemoveAll(filepath.Join(dir, "log")))
}

// checkImported returns an error if an import into a directory was interrupted.
func checkImported(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, importing)); err == nil {
		return fmt.Errorf("%w: an earlier import was interrupted; repeat it", ledger.ErrImport)
	}
	return nil
}

// checkEmpty returns an error if a directory has files, except those of an interrupted
// import.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	// Even if the node has made no block, the files may contain transactions and queue
	// records, which an import would contradict.
	case len(entries) > 0 && checkImported(dir) == nil:
		return fmt.Errorf("%w: %s has %d files, such as %s", ledger.ErrImport, dir, len(entries), entries[0].Name())
	}
	return nil
}
