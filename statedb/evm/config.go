package evm

import (
	"math/big"

	"github.com/ethereum/go-ethereum/params"
)

// ChainConfig returns a chain configuration with all forks up to Prague active
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
		// There are no blobs, but the EVM computes a blob price for every
		// block.
		BlobScheduleConfig: &params.BlobScheduleConfig{Cancun: params.DefaultCancunBlobConfig, Prague: params.DefaultPragueBlobConfig},
	}
}
