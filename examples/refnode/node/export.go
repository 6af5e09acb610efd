package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jamq/jamq/examples/refnode/devkeys"
	"github.com/jamq/jamq/examples/refnode/evmrollup"
	"github.com/jamq/jamq/examples/refnode/store"
)

// Export writes the node of a data directory, which must have been drained, to a new
// file: all blocks, and the state after the last one.
func Export(ctx context.Context, cfg Config, path string) error {
	n, err := New(cfg)
	if err != nil {
		return err
	}
	err = n.Chain.Export(ctx, path)
	n.jam.Close()
	return errors.Join(err, n.store.Close())
}

// Import makes a data directory, which must not exist, from a file that Export wrote.
// The node then goes on with the block after the last one of the file.
func Import(ctx context.Context, cfg Config, path string) (err error) {
	if err := cfg.Validate(); err != nil {
		return err
	}
	n := &Node{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	if n.accounts, err = devkeys.Derive(devkeys.Mnemonic, numAccounts); err != nil {
		return err
	}
	if n.store, err = store.Open(cfg.DataDir, n.log); err != nil {
		return err
	}
	if n.Chain, err = evmrollup.New(n.rollupConfig()); err == nil {
		err = n.Chain.Import(ctx, path)
	}
	if err = errors.Join(err, n.store.Close()); err != nil {
		return fmt.Errorf("node: import %s: %w", path, err)
	}
	return nil
}
