package rpcapi

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/eth/catalyst"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	gethfilters "github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/eth/tracers"
	gethnode "github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/p2p"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/evmrollup/node"
)

// geth is a geth in this process, with the chain rules and accounts of the node. It
// has no peers and opens no port. It creates a block on request.
type geth struct {
	*rpc.Client
	beacon *catalyst.SimulatedBeacon
	apis   []rpc.API // without those of its process
}

func startGeth(t *testing.T, n *node.Node) *geth {
	t.Helper()
	alloc := core.SystemContractAllocs() // geth's blocks call them
	for _, a := range n.Accounts() {
		alloc[a.Address] = types.Account{Balance: new(big.Int).Mul(big.NewInt(10_000), big.NewInt(params.Ether))}
	}
	head := n.Resolve(rpc.EarliestBlockNumber)
	cfg := ethconfig.Defaults
	cfg.Genesis = &core.Genesis{Config: n.ChainConfig(), Alloc: alloc, GasLimit: head.GasLimit(), BaseFee: head.BaseFee(), Difficulty: new(big.Int)}
	cfg.SyncMode, cfg.LogNoHistory, cfg.TxPool.NoLocals = ethconfig.FullSync, true, true
	cfg.Miner.GasCeil = head.GasLimit()
	stack, err := gethnode.New(&gethnode.Config{P2P: p2p.Config{NoDiscovery: true}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stack.Close()) })
	backend, err := eth.New(stack, &cfg)
	require.NoError(t, err)
	system := gethfilters.NewFilterSystem(backend.APIBackend, gethfilters.Config{})
	more := append(tracers.APIs(backend.APIBackend), rpc.API{Namespace: "eth", Service: gethfilters.NewFilterAPI(system)})
	stack.RegisterAPIs(more)
	require.NoError(t, stack.Start())
	beacon, err := catalyst.NewSimulatedBeacon(0, common.Address{}, backend)
	require.NoError(t, err)
	t.Cleanup(func() { _ = beacon.Stop() })
	require.NoError(t, beacon.Fork(backend.BlockChain().GetCanonicalHash(0)))
	client := stack.Attach()
	t.Cleanup(client.Close)
	return &geth{client, beacon, append(backend.APIs(), more...)}
}
