package evm

import (
	"math/big"

	"github.com/ethereum/go-ethereum/params"
)

// ChainConfig returns the chain configuration of a new rollup: all forks up to Prague are active
// from genesis.
func ChainConfig(chainID *big.Int) *params.ChainConfig {
	zero, start := new(big.Int), uint64(0)
	return &params.ChainConfig{
		ChainID:                 new(big.Int).Set(chainID),
		HomesteadBlock:          zero,
		EIP150Block:             zero,
		EIP155Block:             zero,
		EIP158Block:             zero,
		ByzantiumBlock:          zero,
		ConstantinopleBlock:     zero,
		PetersburgBlock:         zero,
		IstanbulBlock:           zero,
		MuirGlacierBlock:        zero,
		BerlinBlock:             zero,
		LondonBlock:             zero,
		ArrowGlacierBlock:       zero,
		GrayGlacierBlock:        zero,
		MergeNetsplitBlock:      zero,
		TerminalTotalDifficulty: zero,
		ShanghaiTime:            &start,
		CancunTime:              &start,
		PragueTime:              &start,
		// A rollup has no blobs, but the EVM computes a blob price for every block and needs these
		// values.
		BlobScheduleConfig: &params.BlobScheduleConfig{Cancun: params.DefaultCancunBlobConfig, Prague: params.DefaultPragueBlobConfig},
	}
}
