package rpcapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/statedb/evm"
)

// simulation executes the blocks of one eth_simulateV1 call in order, on a copy of the
// state that is dropped afterwards.
type simulation struct {
	*api
	ctx    context.Context // bounds the duration
	args   *simulateArgs
	base   *types.Header
	state  *state.StateDB
	hashes []common.Hash // of the simulated blocks so far
	gas    uint64        // left for the calls of all blocks
	bytes  int           // left for returned data
	logs   int           // left for logs
}

// run returns the answer, with one object for each block.
func (s *simulation) run() ([]object, error) {
	blocks, err := s.args.sequence(s.base)
	if err != nil {
		return nil, err
	}
	headers, before := make([]*types.Header, len(blocks)), s.base
	for i := range blocks {
		if headers[i], err = blocks[i].BlockOverrides.header(before); err != nil {
			return nil, err
		}
		before = headers[i]
	}
	answers, parent := make([]object, len(blocks)), s.base
	for i := range blocks {
		run, err := s.begin(&blocks[i], headers[i], parent)
		if err != nil {
			return nil, err
		}
		b, err := run.execute(&blocks[i])
		if err != nil {
			return nil, err
		}
		if answers[i], err = run.answer(b); err != nil {
			return nil, err
		}
		s.hashes, parent = append(s.hashes, b.Hash()), b.Header()
	}
	return answers, nil
}

// blockHash returns the hash of an earlier simulated or real block, for BLOCKHASH.
func (s *simulation) blockHash(number uint64) common.Hash {
	base := s.base.Number.Uint64()
	switch {
	case number > base && number-base <= uint64(len(s.hashes)):
		return s.hashes[number-base-1]
	case number == base:
		return s.base.Hash()
	case number < base:
		if b := s.node.BlockByNumber(number); b != nil {
			return b.Hash()
		}
	}
	return common.Hash{}
}

// simulatedBlock is a block of a simulation while its calls run.
type simulatedBlock struct {
	*simulation
	header   *types.Header
	machine  *vm.EVM
	gasPool  *core.GasPool
	watch    callLogs
	txs      types.Transactions
	senders  []common.Address
	receipts types.Receipts
	results  []callResult
}

// begin starts a simulated block. It applies the block's overrides, and completes the
// header fields that depend on the parent.
func (s *simulation) begin(b *simulatedCalls, header, parent *types.Header) (*simulatedBlock, error) {
	config := s.node.ChainConfig()
	header.ParentHash = parent.Hash()
	if header.BaseFee == nil {
		header.BaseFee = new(big.Int)
		if s.args.Validation {
			header.BaseFee = s.node.BaseFeeAfter(parent)
		}
	}
	contracts := s.node.Precompiles(header.Number, header.Time)
	changes := evm.Overrides{Accounts: b.StateOverrides.changes()}
	if err := changes.Apply(s.state, contracts); err != nil {
		return nil, withoutOverride(err)
	}
	r := &simulatedBlock{
		simulation: s, header: header, gasPool: core.NewGasPool(header.GasLimit), watch: callLogs{transfers: s.args.TraceTransfers, header: header},
	}
	context := vm.BlockContext{
		CanTransfer: core.CanTransfer, Transfer: core.Transfer, GetHash: s.blockHash, Coinbase: header.Coinbase, GasLimit: header.GasLimit,
		BlockNumber: header.Number, Time: header.Time, Difficulty: header.Difficulty, BaseFee: header.BaseFee,
		BlobBaseFee: big.NewInt(params.BlobTxMinBlobGasprice), Random: &header.MixDigest,
	}
	if price := b.BlockOverrides.BlobBaseFee; price != nil {
		context.BlobBaseFee = price.ToInt()
	}
	hooks := r.watch.hooks()
	r.machine = vm.NewEVM(context, state.NewHookedState(s.state, hooks), config, vm.Config{NoBaseFee: !s.args.Validation, Tracer: hooks})
	r.machine.SetPrecompiles(contracts)
	return r, nil
}

// execute runs the calls of a block, pays its withdrawals, and seals the block.
func (r *simulatedBlock) execute(b *simulatedCalls) (*node.Block, error) {
	defer r.machine.Release()
	stop := context.AfterFunc(r.ctx, r.machine.Cancel)
	defer stop()
	for i := range b.Calls {
		if err := r.call(&b.Calls[i]); err != nil {
			return nil, err
		}
	}
	body := &types.Body{Transactions: r.txs, Withdrawals: []*types.Withdrawal{}}
	if b.BlockOverrides.Withdrawals != nil {
		body.Withdrawals = *b.BlockOverrides.Withdrawals
	}
	for i, w := range body.Withdrawals {
		if w == nil {
			return nil, invalidParams("withdrawal %d is null", i)
		}
		wei := new(uint256.Int).Mul(uint256.NewInt(w.Amount), uint256.NewInt(params.GWei))
		r.state.AddBalance(w.Address, wei, tracing.BalanceIncreaseWithdrawal)
	}
	r.header.GasUsed = r.gasPool.Used()
	sealed := types.NewBlock(r.header, body, r.receipts, trie.NewStackTrie(nil))
	for _, result := range r.results {
		for _, l := range result.Logs {
			l.BlockHash = sealed.Hash()
		}
	}
	return &node.Block{Block: sealed, Receipts: r.receipts}, r.state.Error()
}

// call runs a call as the next transaction of the block.
func (r *simulatedBlock) call(args *callArgs) error {
	capped, err := r.complete(args)
	if err != nil {
		return err
	}
	config := r.node.ChainConfig()
	msg, err := args.message(r.header.BaseFee, config.ChainID, 0)
	if err != nil {
		return err
	}
	if !r.args.Validation {
		msg.SkipNonceCheck()
		if r.state.GetNonce(msg.From) == math.MaxUint64 { // EIP-2681 holds without validation too
			return simulateError(fmt.Errorf("%w: address %v, nonce: %d", core.ErrNonceMax, msg.From, uint64(math.MaxUint64)))
		}
	}
	tx := types.NewTx(args.transaction(config.ChainID))
	r.watch.begin(tx.Hash(), len(r.txs))
	r.state.SetTxContext(tx.Hash(), len(r.txs), uint32(len(r.txs)+1))
	result, err := core.ApplyMessage(r.machine, msg.SkipEOACheck().SkipGasLimitCapCheck(), r.gasPool)
	switch {
	case r.ctx.Err() != nil:
		return simulateError(context.Cause(r.ctx))
	case err != nil:
		return simulateError(fmt.Errorf("err: %w (supplied gas %d)", err, msg.GasLimit))
	}
	r.state.Finalise(r.machine.GetRules())
	receipt := core.MakeReceipt(r.machine, result, r.state, r.header.Number, common.Hash{}, r.header.Time, tx, r.gasPool.CumulativeUsed(), nil)
	receipt.EffectiveGasPrice = msg.GasPrice.ToBig()
	r.txs, r.senders, r.receipts = append(r.txs, tx), append(r.senders, msg.From), append(r.receipts, receipt)
	return r.add(result, capped)
}

// complete fills in the nonce and the gas of a call. It returns true if it reduces the
// gas.
func (r *simulatedBlock) complete(args *callArgs) (capped bool, err error) {
	if args.Nonce == nil {
		nonce := hexutil.Uint64(r.state.GetNonce(args.from()))
		args.Nonce = &nonce
	}
	left := r.gasPool.Available(false)
	gas := left
	if args.Gas != nil {
		gas = uint64(*args.Gas)
	}
	if gas > left {
		return false, codedError{fmt.Errorf("block gas limit reached: remaining: %d, required: %d", left, gas), codeBlockGas}
	}
	// All calls of the simulation share r.gas.
	granted := hexutil.Uint64(min(gas, r.gas))
	args.Gas = &granted
	return uint64(granted) < gas, nil
}

// callResult is the result of a call in a simulated block.
type callResult struct {
	ReturnData hexutil.Bytes  `json:"returnData"`
	Logs       []*types.Log   `json:"logs"`
	GasUsed    hexutil.Uint64 `json:"gasUsed"`
	MaxUsedGas hexutil.Uint64 `json:"maxUsedGas"`
	Status     hexutil.Uint64 `json:"status"`
	Error      *callError     `json:"error,omitempty"`
}

// callError is the reason for which a call failed.
type callError struct {
	Message string `json:"message"`
	Code    int    `json:"code"`
	Data    string `json:"data,omitempty"` // of a revert, in hex
}

// add adds the result of a call to the block.
func (r *simulatedBlock) add(result *core.ExecutionResult, capped bool) error {
	r.gas -= min(r.gas, result.UsedGas)
	c := callResult{
		ReturnData: result.Return(), Logs: r.watch.current, GasUsed: hexutil.Uint64(result.UsedGas), MaxUsedGas: hexutil.Uint64(result.MaxUsedGas),
		Status: hexutil.Uint64(types.ReceiptStatusSuccessful),
	}
	switch {
	case errors.Is(result.Err, vm.ErrExecutionReverted):
		c.Error = &callError{reverted(result.Revert()).Error(), codeReverted, hexutil.Encode(result.Revert())}
	case result.Err != nil && capped:
		c.Error = &callError{result.Err.Error() + " (gas limit was capped by the RPC server's global gas cap)", codeExecution, ""}
	case result.Err != nil:
		c.Error = &callError{result.Err.Error(), codeExecution, ""}
	}
	if c.Error != nil {
		c.Status = hexutil.Uint64(types.ReceiptStatusFailed)
	}
	if r.bytes -= len(result.ReturnData); r.bytes < 0 {
		return codedError{fmt.Errorf("the calls return more than %d bytes", r.cfg.BatchBytes), codeTooMany}
	}
	if r.logs -= len(c.Logs); r.logs < 0 {
		return codedError{fmt.Errorf("the calls have more than %d logs", r.cfg.MaxLogs), codeTooMany}
	}
	r.results = append(r.results, c)
	return nil
}

// answer returns the JSON of the block.
func (r *simulatedBlock) answer(b *node.Block) (object, error) {
	o, err := blockObject(b.Block)
	if err != nil {
		return nil, err
	}
	txs := make([]any, len(r.txs))
	for i, tx := range r.txs {
		if !r.args.ReturnFullTransactions {
			txs[i] = tx.Hash()
		} else if txs[i], err = placedTransaction(b, i, r.senders[i]); err != nil {
			return nil, err
		}
	}
	o["transactions"] = txs
	o["calls"] = append([]callResult{}, r.results...)
	return o, nil
}
