package rpcapi

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/examples/refnode/ledger"
	"github.com/jamq/jamq/ratelimit"
)

// Admin implements the admin namespace: calls that change the node. It requires
// a token.
type Admin struct {
	*api
	limiter *ratelimit.Limiter
}

// NodeInfo is the answer of admin_nodeInfo.
type NodeInfo struct {
	// Name is the name and version of the program.
	Name string `json:"name"`
	// ChainID is the rollup's chain id, and Genesis the hash of its block 0.
	ChainID *hexutil.Big `json:"chainId"`
	Genesis common.Hash  `json:"genesis"`
	// Public lists the namespaces that clients without a token may call.
	Public []string `json:"publicApi"`
	// Subscriptions is the used part of [Config].MaxSubscriptions.
	Subscriptions int `json:"subscriptions"`
}

// NodeInfo implements admin_nodeInfo.
func (a *Admin) NodeInfo() (_ *NodeInfo, err error) {
	defer ledger.Recover(&err)
	return &NodeInfo{
		Name: Version, ChainID: (*hexutil.Big)(a.node.ChainConfig().ChainID), Genesis: a.node.Resolve(rpc.EarliestBlockNumber).Hash(),
		Public: a.cfg.API, Subscriptions: a.filters.weight(),
	}, nil
}

// RemoveTransaction implements admin_removeTransaction. It removes a
// transaction from the pool.
func (a *Admin) RemoveTransaction(hash common.Hash) (bool, error) {
	err := a.node.RemovePooled(hash)
	return err == nil, err
}

// BannedUntil implements admin_bannedUntil. It returns the end of a source's
// ban in seconds since 1970, or null if the source is not banned. A source is
// an IPv4 address, or the first 64 bits of an IPv6 address such as
// "2001:db8::/64".
func (a *Admin) BannedUntil(source string) *hexutil.Uint64 {
	until, banned := a.limiter.Banned(source)
	if !banned {
		return nil
	}
	seconds := hexutil.Uint64(until.Unix())
	return &seconds
}

// Pardon implements admin_pardon. It lifts the ban of a source.
func (a *Admin) Pardon(source string) bool {
	a.limiter.Pardon(source)
	return true
}

// Resume implements admin_resume. The node builds and sends packages again
// after a fatal error paused it.
func (a *Admin) Resume(ctx context.Context) (bool, error) {
	err := a.node.Resume(ctx)
	return err == nil, err
}

// GiveUp implements admin_giveUp. The node stops building packages for a block
// that is not final. If none of the block's packages is accumulated, its
// transactions and those of later blocks are executed again.
func (a *Admin) GiveUp(ctx context.Context, number hexutil.Uint64, reason string) (bool, error) {
	err := a.node.GiveUp(ctx, uint64(number), reason)
	return err == nil, err
}
