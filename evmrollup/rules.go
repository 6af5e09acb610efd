package evmrollup

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"

	"github.com/jamq/jamq/statedb/evm"
)

// Rules are the rules in which a chain differs from Ethereum. All nodes of a chain need
// the same rules at every start, because they execute blocks again. The zero value
// means Ethereum's rules.
type Rules struct {
	// BaseFee returns the base fee of the block that follows parent, in wei per gas. The
	// result must depend only on parent, whose base fee and gas limit are set. If the
	// function is nil, EIP-1559 determines the base fee.
	BaseFee func(parent *types.Header) *big.Int
	// Tips is the account that receives the tips. The zero address means 0x4a414d51…01, an
	// address without a key.
	Tips common.Address
	// GasLimit is the gas limit of every block. 0 means 30,000,000.
	GasLimit uint64
	// Precompiles are contracts written in Go. They are added to Ethereum's precompiled
	// contracts, or replace those with the same address. debug_traceCall does not run them.
	// Solidity calls an address only if the address has code, so the host should give each
	// address one byte of code in Config.Genesis; this byte is never executed.
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

// BaseFeeAfter returns the base fee of the block after parent, in wei per gas.
func (c *Chain) BaseFeeAfter(parent *types.Header) *big.Int {
	if own := c.cfg.Rules.BaseFee; own != nil {
		return new(big.Int).Set(own(types.CopyHeader(parent)))
	}
	return eip1559.CalcBaseFee(c.config, parent)
}

// canFall reports whether the base fee falls after an empty block with this header.
func (c *Chain) canFall(empty *types.Header) bool {
	return c.BaseFeeAfter(empty).Cmp(empty.BaseFee) < 0
}

// Precompiles returns the precompiled contracts of a block.
func (c *Chain) Precompiles(number *big.Int, time uint64) vm.PrecompiledContracts {
	return evm.Precompiles(c.config.Rules(number, true, time), c.cfg.Rules.Precompiles)
}
