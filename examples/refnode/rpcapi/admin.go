package rpcapi

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/txpool"
)

// Admin answers the admin namespace: calls that change the node, for callers with a token.
type Admin struct {
	*api
	limiter *txpool.Limiter
}

// NodeInfo is the answer of admin_nodeInfo.
type NodeInfo struct {
	// Name is the program, with its version.
	Name string `json:"name"`
	// ChainID is the rollup's, Genesis the hash of its block 0.
	ChainID *hexutil.Big `json:"chainId"`
	Genesis common.Hash  `json:"genesis"`
	// Public are the namespaces that everybody may call.
	Public []string `json:"publicApi"`
	// Subscriptions is how much of Config.MaxSubscriptions is used.
	Subscriptions int `json:"subscriptions"`
}

// NodeInfo is admin_nodeInfo.
func (a *Admin) NodeInfo() *NodeInfo {
	return &NodeInfo{
		Name: Version, ChainID: (*hexutil.Big)(a.node.ChainConfig().ChainID), Genesis: a.node.Resolve(rpc.EarliestBlockNumber).Hash(),
		Public: a.cfg.API, Subscriptions: a.filters.weight(),
	}
}

// RemoveTransaction is admin_removeTransaction: it takes a transaction out of the pool.
func (a *Admin) RemoveTransaction(hash common.Hash) (bool, error) {
	err := a.node.RemovePooled(hash)
	return err == nil, err
}

// BannedUntil is admin_bannedUntil: the time, in seconds since 1970, until which a source is banned; null if it is not. A source is an IPv4
// address, or the first 64 bits of an IPv6 address such as "2001:db8::/64".
func (a *Admin) BannedUntil(source string) *hexutil.Uint64 {
	until, banned := a.limiter.Banned(source)
	if !banned {
		return nil
	}
	seconds := hexutil.Uint64(until.Unix())
	return &seconds
}

// Pardon is admin_pardon: it lifts the ban of a source.
func (a *Admin) Pardon(source string) bool {
	a.limiter.Pardon(source)
	return true
}

// Resume is admin_resume: the node builds and sends again after a fatal error
// had paused it.
func (a *Admin) Resume(ctx context.Context) (bool, error) {
	err := a.node.Resume(ctx)
	return err == nil, err
}

// GiveUp is admin_giveUp: the node builds no more packages for a block that is
// not final. If none of its packages is accumulated, its transactions and those
// of the blocks after it are executed anew.
func (a *Admin) GiveUp(ctx context.Context, number hexutil.Uint64, reason string) (bool, error) {
	err := a.node.GiveUp(ctx, uint64(number), reason)
	return err == nil, err
}
