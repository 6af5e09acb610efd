package rpcapi

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/ratelimit"
)

// adminMethods implements the namespace admin, whose methods change the node. Only
// clients with a token can call them.
type adminMethods struct {
	*api
	limiter *ratelimit.Limiter
}

// nodeInfo is the answer of admin_nodeInfo.
type nodeInfo struct {
	// Name is the name and version of the program.
	Name string `json:"name"`
	// ChainID is the rollup's chain ID, and Genesis is the hash of its block 0.
	ChainID *hexutil.Big `json:"chainId"`
	Genesis common.Hash  `json:"genesis"`
	// Public lists the namespaces that clients may call without a token.
	Public []string `json:"publicApi"`
	// Subscriptions is the part of [Config].MaxSubscriptions that is in use.
	Subscriptions int `json:"subscriptions"`
}

// NodeInfo implements admin_nodeInfo.
func (a *adminMethods) NodeInfo() (_ *nodeInfo, err error) {
	defer ledger.Recover(&err)
	return &nodeInfo{
		Name: a.cfg.Client, ChainID: (*hexutil.Big)(a.node.ChainConfig().ChainID), Genesis: a.node.Resolve(rpc.EarliestBlockNumber).Hash(),
		Public: a.cfg.API, Subscriptions: a.filters.weight(),
	}, nil
}

// Replica describes a replica of the rollup that follows the leader.
type Replica struct {
	// Address is the URL of the replica's RPC. Lag is the number of writes to the log that
	// the replica had not read yet when it was last seen. Seen is the time since then, in
	// milliseconds.
	Address string         `json:"address"`
	Lag     hexutil.Uint64 `json:"lag"`
	Seen    hexutil.Uint64 `json:"seen"`
}

// Replicas is the answer of admin_replicas.
type Replicas struct {
	// Epoch is the number of times that a replica has become the leader. Leader is the URL
	// of the present leader or, if there is none, of the last one.
	Epoch     hexutil.Uint64 `json:"epoch"`
	Leader    string         `json:"leader"`
	Followers []Replica      `json:"followers"`
}

// Replicas implements admin_replicas.
func (a *adminMethods) Replicas(ctx context.Context) (*Replicas, error) {
	r, err := a.node.Replicas(ctx)
	if err != nil {
		return nil, err
	}
	all := &Replicas{Epoch: hexutil.Uint64(r.Epoch), Leader: r.Leader, Followers: []Replica{}}
	for _, f := range r.Followers {
		all.Followers = append(all.Followers, Replica{f.Name, hexutil.Uint64(f.Lag), hexutil.Uint64(f.Seen.Milliseconds())})
	}
	return all, nil
}

// HandOver implements admin_handOver. This replica, which must be the leader, makes
// another replica the leader and stops, and then its process ends. address is the URL
// of the replica that should lead next; without an address, any replica may lead. A
// replica that is not the leader refuses the call.
func (a *adminMethods) HandOver(ctx context.Context, address *string) (bool, error) {
	if a.node.Clustered() && a.node.Follows() {
		leader, err := a.node.Leader(ctx)
		if err != nil {
			return false, err
		}
		return false, codedError{fmt.Errorf("%w; call %s", errFollows, leader), codeFollows}
	}
	to := ""
	if address != nil {
		to = *address
	}
	err := a.node.Leave(ctx, to)
	return err == nil, err
}

// RemoveTransaction implements admin_removeTransaction. It removes a
// transaction from the pool.
func (a *adminMethods) RemoveTransaction(hash common.Hash) (bool, error) {
	err := a.node.RemovePooled(hash)
	return err == nil, err
}

// BannedUntil implements admin_bannedUntil. It returns the end of the ban of a
// source in seconds since 1970, or null if the source is not banned. A source is an
// IPv4 address, or the first 64 bits of an IPv6 address, such as "2001:db8::/64".
func (a *adminMethods) BannedUntil(source string) *hexutil.Uint64 {
	until, banned := a.limiter.Banned(source)
	if !banned {
		return nil
	}
	seconds := hexutil.Uint64(until.Unix())
	return &seconds
}

// Pardon implements admin_pardon. It lifts the ban of a source.
func (a *adminMethods) Pardon(source string) bool {
	a.limiter.Pardon(source)
	return true
}

// Resume implements admin_resume. It lets the node build and send packages again
// after a fatal error has paused it.
func (a *adminMethods) Resume(ctx context.Context) (bool, error) {
	err := a.node.Resume(ctx)
	return err == nil, err
}

// GiveUp implements admin_giveUp, for a block that JAM keeps rejecting. The node builds
// no more packages for the block. If JAM accumulates none of those that were sent, the
// transactions of the block and of all later blocks return to the pool and are executed
// again in new blocks.
func (a *adminMethods) GiveUp(ctx context.Context, number hexutil.Uint64, reason string) (bool, error) {
	err := a.node.GiveUp(ctx, uint64(number), reason)
	return err == nil, err
}
