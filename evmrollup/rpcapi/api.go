package rpcapi

import (
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/ratelimit"
)

// devClient is the prefix of the client name that web3_clientVersion returns in
// developer mode. Test tools such as Hardhat's network helpers change blocks and
// accounts only on nodes whose client name begins with "anvil/".
const devClient = "anvil/"

// api holds the node, the configuration and the limits, which the receivers of all RPC
// methods share.
type api struct {
	node    *node.Node
	signer  types.Signer
	cfg     *Config
	limits  *limits // nil for admins
	filters *filters
	leader  *leader // nil without a cluster
}

// service is a receiver whose exported methods implement the methods of one
// namespace.
type service struct {
	namespace string
	receiver  any
}

func (a *api) services(limiter *ratelimit.Limiter) []service {
	fees := newFees(a)
	calls := &ethCalls{a, fees}
	all := []service{
		{"eth", &ethChain{a}},
		{"eth", &ethState{a}},
		{"eth", calls},
		{"eth", &ethTransactions{a}},
		{"eth", &ethLogs{a}},
		{"eth", &ethSubscriptions{a}},
		{"eth", fees},
		{"net", &netMethods{a}},
		{"web3", &web3Methods{a}},
		{"txpool", &txpoolMethods{a}},
		{"debug", newDebug(a)},
		{"trace", &traceMethods{a}},
		{"jam", &jamMethods{a}},
		{"admin", &adminMethods{a, limiter}},
	}
	if a.cfg.Dev { // the last of two methods with one name counts
		a.node.SetApart(1) // tests of contracts wait for a block to let time pass
		wallet, evm := newWallet(calls), newEVM(a)
		all = append(all, service{"eth", wallet}, service{"personal", &devPersonal{wallet}}, service{"evm", evm})
		tool := &devTool{evm}
		all = append(all, service{"hardhat", tool}, service{"anvil", &devAnvil{tool}})
	}
	return all
}

// devNamespaces are the namespaces that exist only in developer mode (Config.Dev).
var devNamespaces = []string{"personal", "evm", "hardhat", "anvil"}

// resolve returns the block with a tag, number or hash, or geth's error.
func (a *api) resolve(at rpc.BlockNumberOrHash) (*node.Block, error) {
	if hash, ok := at.Hash(); ok {
		b := a.node.BlockByHash(hash)
		if b == nil {
			return nil, errHeaderForHashNotFound
		}
		if line := a.node.Resolve(rpc.BlockNumber(b.NumberU64())); at.RequireCanonical && (line == nil || line.Hash() != b.Hash()) {
			return nil, fmt.Errorf("hash is not currently canonical")
		}
		return b, nil
	}
	number, ok := at.Number()
	if !ok {
		return nil, invalidParams("invalid arguments; neither block nor hash specified")
	}
	b := a.node.Resolve(number)
	if b == nil {
		return nil, errHeaderNotFound
	}
	return b, nil
}

// latestIfNil returns *at, or the tag latest if at is nil.
func latestIfNil(at *rpc.BlockNumberOrHash) rpc.BlockNumberOrHash {
	if at != nil {
		return *at
	}
	return rpc.BlockNumberOrHashWithNumber(rpc.LatestBlockNumber)
}
