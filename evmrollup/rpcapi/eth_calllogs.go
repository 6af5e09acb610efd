package rpcapi

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
)

// callLogs collects the logs of the calls in a simulated block, without those of
// reverted calls. If the client wants it, callLogs also makes a log for each transfer
// of ether.
type callLogs struct {
	transfers bool          // log transfers of ether too
	header    *types.Header // of the block
	tx        common.Hash   // of the running call
	index     uint          // of the running call in the block
	before    int           // number of logs of earlier calls
	current   []*types.Log  // of the running call
	frames    []int         // lengths of current at which the open frames began
}

// A transfer of ether is logged like a token transfer, with this address as the token
// (ERC-7528).
var (
	etherToken    = common.HexToAddress("0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee")
	transferTopic = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
)

// begin starts the next call.
func (c *callLogs) begin(tx common.Hash, index int) {
	c.before += len(c.current)
	c.tx, c.index, c.current, c.frames = tx, uint(index), []*types.Log{}, nil
}

// hooks returns the hooks that collect the logs, for the EVM and its state.
func (c *callLogs) hooks() *tracing.Hooks {
	return &tracing.Hooks{
		OnEnter: c.enter,
		OnExit:  func(_ int, _ []byte, _ uint64, _ error, reverted bool) { c.exit(reverted) },
		OnLog:   func(l *types.Log) { c.add(l.Address, l.Topics, l.Data) },
	}
}

func (c *callLogs) enter(_ int, op byte, from, to common.Address, _ []byte, _ uint64, value *big.Int) {
	c.frames = append(c.frames, len(c.current))
	stays := vm.OpCode(op) == vm.DELEGATECALL || vm.OpCode(op) == vm.CALLCODE // with the caller
	if c.transfers && !stays && value != nil && value.Sign() > 0 {
		topics := []common.Hash{transferTopic, common.BytesToHash(from.Bytes()), common.BytesToHash(to.Bytes())}
		c.add(etherToken, topics, common.BigToHash(value).Bytes())
	}
}

func (c *callLogs) exit(reverted bool) {
	last := len(c.frames) - 1
	if reverted {
		c.current = c.current[:c.frames[last]]
	}
	c.frames = c.frames[:last]
}

func (c *callLogs) add(addr common.Address, topics []common.Hash, data []byte) {
	c.current = append(c.current, &types.Log{
		Address: addr, Topics: topics, Data: data, BlockNumber: c.header.Number.Uint64(), BlockTimestamp: c.header.Time,
		TxHash: c.tx, TxIndex: c.index, Index: uint(c.before + len(c.current)),
	})
}
