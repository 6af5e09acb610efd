package rpcapi

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/forkid"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
)

// forkConfig describes the rules of one fork (EIP-7910).
type forkConfig struct {
	// ActivationTime is the Unix time, in seconds, from which these rules apply. It is 0 if
	// they apply from the first block.
	ActivationTime uint64             `json:"activationTime"`
	BlobSchedule   *params.BlobConfig `json:"blobSchedule"`
	ChainID        *hexutil.Big       `json:"chainId"`
	// ForkID is the fork hash of EIP-6122.
	ForkID hexutil.Bytes `json:"forkId"`
	// Precompiles are the addresses of the precompiled contracts by name.
	Precompiles map[string]common.Address `json:"precompiles"`
	// SystemContracts is empty, because the blocks of the rollup call no system contracts.
	SystemContracts map[string]common.Address `json:"systemContracts"`
}

// forkConfigs is the answer of eth_config. Next and Last are nil, because no other fork
// is scheduled.
type forkConfigs struct {
	Current *forkConfig `json:"current"` // the rules that hold now
	Next    *forkConfig `json:"next"`
	Last    *forkConfig `json:"last"`
}

// Config implements eth_config (EIP-7910). It returns the rules of the current fork. It
// returns no next fork, because all blocks of the chain have the same rules.
func (a *ethChain) Config() (_ *forkConfigs, err error) {
	defer ledger.Recover(&err)
	config := a.node.ChainConfig()
	genesis, latest := a.node.Resolve(rpc.EarliestBlockNumber), a.node.Resolve(rpc.LatestBlockNumber)
	fork := config.LatestFork(latest.Time())
	id := forkid.NewID(config, genesis.Block, latest.NumberU64(), latest.Time()).Hash
	current := &forkConfig{
		BlobSchedule: config.BlobConfig(fork), ChainID: (*hexutil.Big)(config.ChainID), ForkID: id[:],
		Precompiles: make(map[string]common.Address), SystemContracts: make(map[string]common.Address),
	}
	for addr, contract := range a.node.Precompiles(latest.Number(), latest.Time()) {
		current.Precompiles[contract.Name()] = addr
	}
	return &forkConfigs{Current: current}, nil
}
