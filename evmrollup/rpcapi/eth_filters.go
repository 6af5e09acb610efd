package rpcapi

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	gethfilters "github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/evmrollup/node"
)

// share is the part of Config.MaxSubscriptions that a single filter or
// subscription uses.
type share struct {
	source string // empty if not limited
	weight int
}

// poolBuffer is the number of transactions that a filter or subscription for pending
// transactions can buffer. When the buffer is full, new transactions are lost. Because
// the buffer needs memory, such a filter counts as poolWeight other filters.
const poolBuffer, poolWeight = 4096, 100

// filter is a filter that a client polls. It stores no results, only a position in the
// list of head changes that the node keeps. An idle filter therefore takes almost no
// memory, except for the transactions in pool.
type filter struct {
	share
	mu     sync.Mutex // serializes the answers
	cursor uint64     // in the node's head changes
	// A filter for logs sets logs, its criteria. A filter for pending transactions sets
	// pool, its buffer, which the function end closes. A filter for blocks sets neither.
	logs *gethfilters.FilterCriteria
	pool <-chan *types.Transaction
	end  func()
	full bool // whole transactions, not hashes

	asked time.Time // last use, guarded by filters.mu
}

// filters contains the filters of all clients. It also limits how many filters and
// subscriptions there are in total and per source. It is safe for concurrent use.
type filters struct {
	node *node.Node
	cfg  *Config
	now  func() time.Time

	mu       sync.Mutex
	byID     map[rpc.ID]*filter
	used     int // total weight
	bySource map[string]int
	swept    time.Time
}

func newFilters(n *node.Node, cfg *Config) *filters {
	return &filters{node: n, cfg: cfg, now: time.Now, byID: make(map[rpc.ID]*filter), bySource: make(map[string]int)}
}

// take reserves room for a filter or a subscription, until release is called.
func (t *filters) take(s share) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	most := t.cfg.MaxSubscriptions
	if own := t.bySource[s.source]; s.source != "" && own+s.weight > most/sourceShare {
		return codedError{fmt.Errorf("too many filters and subscriptions: %s has %d of %d", s.source, own, most/sourceShare), CodeLimited}
	}
	if t.used+s.weight > most {
		return codedError{fmt.Errorf("too many filters and subscriptions: the node has %d of %d", t.used, most), CodeLimited}
	}
	t.used += s.weight
	if s.source != "" {
		t.bySource[s.source] += s.weight
	}
	return nil
}

// sweep removes expired filters, at most once a second. The caller must hold t.mu.
func (t *filters) sweep() {
	now := t.now()
	if now.Sub(t.swept) < time.Second {
		return
	}
	t.swept = now
	for id, f := range t.byID {
		if now.Sub(f.asked) > t.cfg.FilterTime {
			t.drop(id, f)
		}
	}
}

// sourceShare is the divisor of Config.MaxSubscriptions that gives one source's
// maximum.
const sourceShare = 10

func (t *filters) release(s share) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free(s)
}

func (t *filters) free(s share) {
	t.used -= s.weight
	if s.source == "" {
		return
	}
	if t.bySource[s.source] -= s.weight; t.bySource[s.source] <= 0 {
		delete(t.bySource, s.source)
	}
}

// drop removes a filter. The caller must hold t.mu.
func (t *filters) drop(id rpc.ID, f *filter) {
	if f.pool != nil {
		f.end()
	}
	delete(t.byID, id)
	t.free(f.share)
}

// install adds a filter, whose share must already be reserved.
func (t *filters) install(f *filter) rpc.ID {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := rpc.NewID()
	f.asked = t.now()
	t.byID[id] = f
	return id
}

// weight returns the part of Config.MaxSubscriptions that is in use.
func (t *filters) weight() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used
}

// get returns a filter and restarts its lifetime.
func (t *filters) get(id rpc.ID) (*filter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.byID[id]
	if f == nil || t.now().Sub(f.asked) > t.cfg.FilterTime {
		return nil, errFilterNotFound
	}
	f.asked = t.now()
	return f, nil
}

// remove drops a filter and reports whether it existed.
func (t *filters) remove(id rpc.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.byID[id]
	if f == nil {
		return false
	}
	t.drop(id, f)
	return true
}

// NewFilter implements eth_newFilter. From now on, the filter delivers the matching
// logs of blocks that become latest. If a reorg of JAM removes latest blocks, the
// filter delivers their logs again, with the field removed set.
func (a *ethSubscriptions) NewFilter(ctx context.Context, criteria gethfilters.FilterCriteria) (_ rpc.ID, err error) {
	defer ledger.Recover(&err)
	if err := a.checkLive(&criteria); err != nil {
		return "", err
	}
	return a.newFilter(ctx, &filter{logs: &criteria}, 1)
}

// NewBlockFilter implements eth_newBlockFilter. From now on, the filter delivers
// the hashes of blocks that become latest.
func (a *ethSubscriptions) NewBlockFilter(ctx context.Context) (_ rpc.ID, err error) {
	defer ledger.Recover(&err)
	return a.newFilter(ctx, &filter{}, 1)
}

// NewPendingTransactionFilter implements eth_newPendingTransactionFilter. From now on,
// the filter delivers the transactions of the pool that become executable. It delivers
// their hashes or, if full is true, the whole transactions.
func (a *ethSubscriptions) NewPendingTransactionFilter(ctx context.Context, full *bool) (_ rpc.ID, err error) {
	defer ledger.Recover(&err)
	return a.newFilter(ctx, &filter{full: full != nil && *full}, poolWeight)
}

func (a *ethSubscriptions) newFilter(ctx context.Context, f *filter, weight int) (rpc.ID, error) {
	if err := a.limits.call(ctx, "eth_newFilter", 0); err != nil {
		return "", err
	}
	f.share = share{a.limits.source(ctx), weight}
	if err := a.filters.take(f.share); err != nil {
		return "", err
	}
	if f.cursor = a.node.HeadCursor(); weight == poolWeight {
		f.pool, f.end = a.node.PendingTransactions(poolBuffer)
	}
	return a.filters.install(f), nil
}

// UninstallFilter implements eth_uninstallFilter. It reports whether the filter
// existed.
func (a *ethSubscriptions) UninstallFilter(id rpc.ID) bool { return a.filters.remove(id) }

// GetFilterLogs implements eth_getFilterLogs. It returns all logs that match the
// criteria of a log filter, not only new ones.
func (a *ethSubscriptions) GetFilterLogs(ctx context.Context, id rpc.ID) (_ []*types.Log, err error) {
	defer ledger.Recover(&err)
	f, err := a.filters.get(id)
	if err != nil {
		return nil, err
	}
	if f.logs == nil {
		return nil, errFilterNotFound
	}
	return (&ethLogs{a.api}).GetLogs(ctx, *f.logs)
}

// GetFilterChanges implements eth_getFilterChanges. It returns the results since the
// previous call. If there are more than [Config].MaxLogs results, it stops after the
// block that reaches this number, and the next call continues there.
func (a *ethSubscriptions) GetFilterChanges(ctx context.Context, id rpc.ID) (_ any, err error) {
	defer ledger.Recover(&err)
	f, err := a.filters.get(id)
	if err != nil {
		return nil, err
	}
	if err := a.limits.call(ctx, "eth_getFilterChanges", 0); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var news any
	switch {
	case f.pool != nil:
		news, err = a.newTransactions(f)
	case f.logs != nil:
		news, err = a.newLogs(f)
	default:
		news, err = a.newBlocks(f)
	}
	if errors.Is(err, errFilterNotFound) {
		a.filters.remove(id) // too many changes were missed
	}
	return news, err
}

func (a *ethSubscriptions) newLogs(f *filter) (any, error) {
	logs := []*types.Log{}
	err := a.newChanges(f, func(c node.HeadChange) bool {
		logs = append(logs, liveLogs(c, f.logs)...)
		return len(logs) < a.cfg.MaxLogs
	})
	return logs, err
}

func (a *ethSubscriptions) newBlocks(f *filter) (any, error) {
	hashes := []common.Hash{}
	err := a.newChanges(f, func(c node.HeadChange) bool {
		if !c.Removed {
			hashes = append(hashes, c.Block.Hash())
		}
		return len(hashes) < a.cfg.MaxLogs
	})
	return hashes, err
}

// newChanges calls visit for each head change that the filter has not delivered yet.
func (a *ethSubscriptions) newChanges(f *filter, visit func(node.HeadChange) bool) error {
	for {
		changes, next, _, err := a.node.HeadChanges(f.cursor)
		if errors.Is(err, node.ErrMissed) {
			return errFilterNotFound // as for an expired filter
		}
		if err != nil {
			return err
		}
		for _, c := range changes {
			f.cursor++
			if !visit(c) {
				return nil
			}
		}
		if f.cursor = next; len(changes) == 0 {
			return nil
		}
	}
}

// newTransactions returns the transactions in the filter's buffer.
func (a *ethSubscriptions) newTransactions(f *filter) (any, error) {
	hashes, txs := []common.Hash{}, []object{}
	for {
		var tx *types.Transaction
		select {
		case tx = <-f.pool:
		default:
			if f.full {
				return txs, nil
			}
			return hashes, nil
		}
		switch {
		case tx == nil: // closed
			return nil, errFilterNotFound
		case f.full:
			o, err := a.pooledTransaction(tx, a.node.PooledProgress())
			if err != nil {
				return nil, err
			}
			txs = append(txs, o)
		default:
			hashes = append(hashes, tx.Hash())
		}
	}
}

// checkLive checks the criteria of a filter or subscription for future logs.
func (a *api) checkLive(c *gethfilters.FilterCriteria) error {
	if err := a.checkTerms(c); err != nil {
		return err
	}
	if isPending(c.FromBlock) || isPending(c.ToBlock) {
		return errPendingLogs
	}
	// Each end of the block range must be a number, earliest or latest. A range that
	// begins with latest must also end with latest.
	fromLatest, toLatest := isLatest(c.FromBlock), isLatest(c.ToBlock)
	from, okFrom := fixed(c.FromBlock)
	to, okTo := fixed(c.ToBlock)
	switch {
	case fromLatest && toLatest, okFrom && toLatest, okFrom && okTo && from <= to:
		return nil
	}
	return errLogRange
}

// isLatest reports whether one end of a block range is latest, which is the default.
func isLatest(n *big.Int) bool { return n == nil || n.Int64() == rpc.LatestBlockNumber.Int64() }

// fixed returns the block number at one end of a range.
func fixed(n *big.Int) (int64, bool) {
	switch {
	case n == nil:
		return 0, false
	case n.Int64() == rpc.EarliestBlockNumber.Int64():
		return 0, true
	}
	// Other tags, such as latest, move with the head of the chain.
	return n.Int64(), n.Sign() >= 0
}

// liveLogs returns the logs of a head change that match the criteria.
func liveLogs(c node.HeadChange, criteria *gethfilters.FilterCriteria) []*types.Log {
	number := c.Block.Number()
	switch {
	case criteria.BlockHash != nil && *criteria.BlockHash != c.Block.Hash(),
		criteria.FromBlock != nil && criteria.FromBlock.Sign() >= 0 && number.Cmp(criteria.FromBlock) < 0,
		criteria.ToBlock != nil && criteria.ToBlock.Sign() >= 0 && number.Cmp(criteria.ToBlock) > 0:
		return nil
	}
	logs := matching(nil, c.Block.Logs(), criteria)
	if !c.Removed {
		return logs
	}
	// The block is no longer latest, so its logs are marked as removed.
	for i, l := range logs {
		removed := *l // l is shared with the block
		removed.Removed = true
		logs[i] = &removed
	}
	return logs
}
