package rpcapi

import (
	"context"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/history"
	"github.com/ethereum/go-ethereum/core/types"
	gethfilters "github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
)

// ethLogs implements eth_getLogs.
type ethLogs struct{ *api }

// maxTopics is the maximum number of topics of a log.
const maxTopics = 4

// checkTerms returns an error if a query for logs has too many addresses or topics.
func (a *api) checkTerms(c *gethfilters.FilterCriteria) error {
	if len(c.Topics) > maxTopics {
		return invalidParams("exceed max topics")
	}
	most := len(c.Addresses)
	for _, topics := range c.Topics {
		most = max(most, len(topics))
	}
	if most > a.cfg.LogTerms {
		return invalidParams("exceed max addresses or topics per search position: %d, want at most %d", most, a.cfg.LogTerms)
	}
	return nil
}

// GetLogs implements eth_getLogs. By default, both ends of the block range are the
// latest block. A range that goes beyond the latest block is an error, because the
// client would mistake the incomplete answer for a complete one.
func (a *ethLogs) GetLogs(ctx context.Context, criteria gethfilters.FilterCriteria) (_ []*types.Log, err error) {
	defer ledger.Recover(&err)
	if err := a.checkTerms(&criteria); err != nil {
		return nil, err
	}
	if err := a.limits.call(ctx, "eth_getLogs", 0); err != nil {
		return nil, err
	}
	if criteria.BlockHash != nil {
		b, err := whole(a.node.BlockByHash(*criteria.BlockHash))
		switch {
		case err != nil:
			return nil, err
		case b == nil:
			return nil, errUnknownBlock
		}
		return matching([]*types.Log{}, b.Logs(), &criteria), nil
	}
	from, to, err := a.logRange(&criteria)
	if err != nil {
		return nil, err
	}
	logs := []*types.Log{}
	for number := range a.node.Logs(uint64(from), uint64(to), criteria.Addresses, criteria.Topics) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		some, ok := a.node.LogsOf(number)
		if !ok {
			break // the block was undone meanwhile
		}
		if logs = matching(logs, some, &criteria); len(logs) > a.cfg.MaxLogs {
			return nil, invalidParams("query returned more than %d results", a.cfg.MaxLogs)
		}
	}
	// Blocks that were pruned meanwhile count too. The genesis has no logs.
	if oldest := a.node.OldestBlock(); oldest > 1 && uint64(from) < oldest {
		return nil, &history.PrunedHistoryError{}
	}
	return logs, nil
}

var (
	errPendingLogs = invalidParams("pending logs are not supported")
	errLogRange    = invalidParams("invalid block range params")
)

// isPending reports whether one end of a range is the tag pending.
func isPending(n *big.Int) bool { return n != nil && n.Int64() == rpc.PendingBlockNumber.Int64() }

// logRange returns the first and the last block number of a query.
func (a *ethLogs) logRange(criteria *gethfilters.FilterCriteria) (from, to int64, err error) {
	latest := a.node.Resolve(rpc.LatestBlockNumber).Number().Int64()
	if isPending(criteria.FromBlock) || isPending(criteria.ToBlock) {
		return 0, 0, errPendingLogs
	}
	number := func(n *big.Int) (int64, bool) {
		if n == nil {
			n = big.NewInt(rpc.LatestBlockNumber.Int64())
		}
		if n.Sign() >= 0 {
			return n.Int64(), true
		}
		b := a.node.Resolve(rpc.BlockNumber(n.Int64()))
		if b == nil {
			return 0, false
		}
		return b.Number().Int64(), true
	}
	from, okFrom := number(criteria.FromBlock)
	to, okTo := number(criteria.ToBlock)
	if !okFrom || !okTo {
		return 0, 0, errHeaderNotFound
	}
	switch {
	case from > to, isLatest(criteria.FromBlock) && !isLatest(criteria.ToBlock): // as geth
		return 0, 0, errLogRange
	case to > latest:
		return 0, 0, invalidParams("block range extends beyond current head block")
	case uint64(to-from) >= a.cfg.LogRange:
		return 0, 0, invalidParams("block range of %d blocks is too large, want at most %d", to-from+1, a.cfg.LogRange)
	}
	return from, to, nil
}

// matching appends the logs in some that match the criteria to logs.
func matching(logs, some []*types.Log, criteria *gethfilters.FilterCriteria) []*types.Log {
	for _, l := range some {
		if fits(l, criteria.Addresses, criteria.Topics) {
			logs = append(logs, l)
		}
	}
	return logs
}

// fits reports whether a log matches a query of eth_getLogs.
func fits(l *types.Log, addresses []common.Address, topics [][]common.Hash) bool {
	// An empty list of addresses or topics matches everything.
	if len(addresses) > 0 && !slices.Contains(addresses, l.Address) {
		return false
	}
	if len(topics) > len(l.Topics) {
		return false
	}
	for i, any := range topics {
		if len(any) > 0 && !slices.Contains(any, l.Topics[i]) {
			return false
		}
	}
	return true
}
