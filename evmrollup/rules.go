package evmrollup

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"

	"github.com/jamq/jamq/statedb/evm"
)

// Rules change how a chain differs from Ethereum. All nodes of a chain need the same, at
// every start, because blocks are executed again with them. The zero value is Ethereum.
type Rules struct {
	// BaseFee returns the base fee of the block after a header, in wei per gas. It must depend on
	// the header alone, whose base fee and gas limit are set. Nil is EIP-1559.
	BaseFee func(parent *types.Header) *big.Int
	// Tips is the receiver of the tips. The zero address stands for 0x4a414d51…01, which has
	// no key.
	Tips common.Address
	// GasLimit is the gas limit of every block. 0 means 30,000,000.
	GasLimit uint64
	// Precompiles are contracts written in Go, in addition to Ethereum's precompiled contracts or
	// in their place. Solidity calls an address only if it has code: give it one byte in
	// Config.Genesis, which is never executed. debug_traceCall does not run them.
	Precompiles vm.PrecompiledContracts
}

// sequencer receives the tips by default.
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

// canFall reports whether the block after a header without transactions has a lower base fee.
func (c *Chain) canFall(empty *types.Header) bool {
	return c.BaseFeeAfter(empty).Cmp(empty.BaseFee) < 0
}

// Precompiles returns the precompiled contracts of a block.
func (c *Chain) Precompiles(number *big.Int, time uint64) vm.PrecompiledContracts {
	return evm.Precompiles(c.config.Rules(number, true, time), c.cfg.Rules.Precompiles)
}
