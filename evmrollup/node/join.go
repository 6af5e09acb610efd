package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/store"
	"github.com/jamq/jamq/statedb"
)

// CopyPath is the URL path from which a replica that joins the cluster downloads the
// blocks and states of another replica.
const CopyPath = "/replica/data"

// mostCopies is the maximum number of times that a joining replica copies the data of
// another one. It must copy again if the cluster's log has dropped blocks in the
// meantime, and now begins with a later block than the copy has.
const mostCopies = 3

// openReplica opens a node of a cluster.
func openReplica(cfg Config) (n *Node, err error) {
	there, err := store.Exists(cfg.DataDir)
	if err != nil {
		return nil, cfg.inDirectory(err)
	}
	if there {
		if n, err = open(cfg); !needsCopy(err) {
			return n, err
		}
	}
	// The directory is empty, or lacks the blocks with which the log begins because the
	// node was away for a long time. Copy the blocks and states of another replica.
	for range mostCopies {
		cfg.Logger.Info("this replica copies the blocks and states of another one", "because", err)
		copied, failure := fetchCopy(context.Background(), &cfg)
		if failure != nil || there && !copied {
			return nil, errors.Join(err, failure)
		}
		if n, err = open(cfg); !needsCopy(err) {
			return n, err
		}
	}
	return nil, err
}

// needsCopy reports whether an error of opening a data directory goes away if the data
// of another replica is copied.
func needsCopy(err error) bool {
	return errors.Is(err, ledger.ErrDamaged) || errors.Is(err, statedb.ErrUnknownRoot)
}

// fetchCopy replaces the content of a data directory by that of another replica.
func fetchCopy(ctx context.Context, cfg *Config) (copied bool, err error) {
	log, err := pglog.Open(ctx, cfg.Cluster)
	if err != nil {
		return false, err
	}
	defer log.Close()
	lead, err := log.Leader(ctx)
	if err != nil || lead.Epoch == 0 {
		return false, err
	}
	members, err := log.Members(ctx)
	if err != nil {
		return false, err
	}
	slices.SortFunc(members, func(a, b pglog.Member) int { return cmp.Compare(a.Lag, b.Lag) })
	from := []string{lead.Address}
	for _, m := range members {
		from = append(from, m.Name)
	}
	for _, address := range from {
		if address == cfg.Cluster.Address {
			continue
		}
		if err := fetchFrom(ctx, cfg, address); err != nil {
			cfg.Logger.Warn("a replica has not given its blocks and states", "replica", address, "err", err)
			continue
		}
		cfg.Logger.Info("the blocks and states are those of another replica", "replica", address)
		return true, nil
	}
	// No other replica serves its blocks and states, and the directory has not changed.
	return false, nil
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

// WriteCopy writes this node's blocks and states to w, for a replica that joins the
// cluster. The error wraps ErrNoCluster if there is no cluster.
func (n *Node) WriteCopy(w io.Writer) error {
	if n.shared == nil {
		return ErrNoCluster
	}
	return n.store.WriteCopy(w)
}
