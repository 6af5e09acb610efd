package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/examples/refnode/store"
)

// CopyPath is the path at which a replica serves its blocks and states to one that joins.
const CopyPath = "/replica/data"

// mostCopies is how often a replica that joins copies the data of others, if their log has moved on
// during the copy.
const mostCopies = 3

// join makes a replica whose data directory is empty.
func join(cfg Config) (n *Node, err error) {
	for range mostCopies {
		if err := fetchCopy(context.Background(), &cfg); err != nil {
			return nil, err
		}
		if n, err = open(cfg); err == nil {
			return n, nil
		}
		cfg.Logger.Warn("the copy of another replica cannot be used", "err", err)
		if err := os.RemoveAll(filepath.Join(cfg.DataDir, "db")); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// fetchCopy fills an empty data directory with the blocks and states of another replica. If there
// is no other one, the directory stays empty, and the log must have all blocks.
func fetchCopy(ctx context.Context, cfg *Config) error {
	log, err := pglog.Open(ctx, cfg.Cluster)
	if err != nil {
		return err
	}
	defer log.Close()
	lead, err := log.Leader(ctx)
	if err != nil || lead.Epoch == 0 {
		return err
	}
	members, err := log.Members(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(members, func(a, b pglog.Member) int { return cmp.Compare(a.Lag, b.Lag) })
	from := []string{lead.Address}
	for _, m := range members {
		from = append(from, m.Name)
	}
	var failures []error
	for _, address := range from {
		if address == cfg.Cluster.Address {
			continue
		}
		err := fetchFrom(ctx, cfg, address)
		if err == nil {
			cfg.Logger.Info("the blocks and states are those of another replica", "replica", address)
			return nil
		}
		failures = append(failures, err)
	}
	cfg.Logger.Warn("no other replica has given its blocks and states; the log must have all", "err", errors.Join(failures...))
	return nil
}

func fetchFrom(ctx context.Context, cfg *Config, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+CopyPath, http.NoBody)
	if err != nil {
		return err
	}
	if cfg.Authorize != nil {
		if err := cfg.Authorize(request.Header); err != nil {
			return err
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("node: %s answers %s", address, response.Status)
	}
	return store.ReadCopy(cfg.DataDir, response.Body)
}

// WriteCopy writes the blocks and states for a replica that joins. The error wraps ErrNoCluster.
func (n *Node) WriteCopy(w io.Writer) error {
	if n.shared == nil {
		return ErrNoCluster
	}
	return n.store.WriteCopy(w)
}
