package evmrollup

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"

	"github.com/jamq/jamq/statedb/evm"
)

// Rules are the rules of a chain that differ from Ethereum's. All nodes of a chain
// need the same rules at every start, because they execute blocks again. The zero
// value means Ethereum's rules.
type Rules struct {
	// BaseFee returns the base fee of the block after the given header, in wei per gas. The
	// result must depend only on that header, whose base fee and gas limit are set. If BaseFee
	// is nil, EIP-1559 applies.
	BaseFee func(parent *types.Header) *big.Int
	// Tips is the account that receives the tips. The zero address stands for 0x4a414d51…01, an
	// address without a key.
	Tips common.Address
	// GasLimit is the gas limit of every block. 0 means 30,000,000.
	GasLimit uint64
	// Precompiles are contracts written in Go, in addition to Ethereum's precompiled contracts
	// or in place of them. Solidity calls an address only if the address has code, so the host
	// should give such an address one byte of code in Config.Genesis; that byte is never
	// executed. debug_traceCall does not run these contracts.
	Precompiles vm.PrecompiledContracts
}

// sequencer is the account that receives the tips by default.
var sequencer = common.HexToAddress("0x4a414d5100000000000000000000000000000001")

func (r *Rules) sequencer() common.Address {
	if r.Tips == (common.Address{}) {
		return sequencer
	}
	return r.Tips
}

func (r *Rules) gasLimit() uint64 {
	if r.GasLimit == 0 {
		return 30_000_000
	}
	return r.GasLimit
}

// BaseFeeAfter returns the base fee of the block after a header, in wei per gas.
func (c *Chain) BaseFeeAfter(parent *types.Header) *big.Int {
	if own := c.cfg.Rules.BaseFee; own != nil {
		return new(big.Int).Set(own(types.CopyHeader(parent)))
	}
	return eip1559.CalcBaseFee(c.config, parent)
}

// canFall reports whether an empty block with this header would lead to a lower base fee.
func (c *Chain) canFall(empty *types.Header) bool {
	return c.BaseFeeAfter(empty).Cmp(empty.BaseFee) < 0
}

// Precompiles returns the precompiled contracts of a block.
func (c *Chain) Precompiles(number *big.Int, time uint64) vm.PrecompiledContracts {
	return evm.Precompiles(c.config.Rules(number, true, time), c.cfg.Rules.Precompiles)
}
