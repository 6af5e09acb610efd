package rpcapi

import (
	"context"
	"math/big"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth/gasprice"
	"github.com/ethereum/go-ethereum/event"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
)

// ethFees implements the eth methods about fees. It uses go-ethereum's price oracle.
type ethFees struct {
	*api
	mu     sync.Mutex
	oracle *gasprice.Oracle
	// replaced is the node's count of replaced blocks when the oracle was made. If the
	// count has changed, the oracle's cache may contain a replaced block.
	replaced uint64
}

func newFees(a *api) *ethFees { return &ethFees{api: a} }

// current returns the oracle that suggests gas prices.
func (f *ethFees) current() *gasprice.Oracle {
	replaced := f.node.ReplacedBlocks()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.oracle == nil || f.replaced != replaced {
		// The old oracle has cached blocks that were replaced.
		f.replaced = replaced
		f.oracle = gasprice.NewOracle(feeBackend{f.api}, gasprice.Config{
			Blocks:           20,
			Percentile:       60,
			MaxHeaderHistory: 1024,
			MaxBlockHistory:  1024,
			MaxPrice:         gasprice.DefaultMaxPrice,
			IgnorePrice:      gasprice.DefaultIgnorePrice,
		}, big.NewInt(params.GWei))
	}
	return f.oracle
}

// MaxPriorityFeePerGas implements eth_maxPriorityFeePerGas. It returns the suggested
// tip, in wei per gas.
func (f *ethFees) MaxPriorityFeePerGas(ctx context.Context) (_ *hexutil.Big, err error) {
	defer ledger.Recover(&err)
	tip, err := f.current().SuggestTipCap(ctx)
	return (*hexutil.Big)(tip), err
}

// GasPrice implements eth_gasPrice. It returns the sum of the suggested tip and
// the base fee of the pending block, in wei per gas.
func (f *ethFees) GasPrice(ctx context.Context) (_ *hexutil.Big, err error) {
	defer ledger.Recover(&err)
	tip, err := f.current().SuggestTipCap(ctx)
	if err != nil {
		return nil, err
	}
	head := f.node.Resolve(rpc.PendingBlockNumber)
	return (*hexutil.Big)(tip.Add(tip, head.BaseFee())), nil
}

// BaseFee implements eth_baseFee. It returns the base fee of the block after
// the pending one, in wei per gas.
func (f *ethFees) BaseFee() *hexutil.Big {
	return (*hexutil.Big)(f.node.BaseFeeAfter(f.node.Resolve(rpc.PendingBlockNumber).Header()))
}

// BlobBaseFee implements eth_blobBaseFee. It always returns the lowest possible price,
// in wei per blob gas, because the chain has no blobs.
func (f *ethFees) BlobBaseFee() *hexutil.Big {
	return (*hexutil.Big)(big.NewInt(params.BlobTxMinBlobGasprice))
}

// feeHistory is the answer of eth_feeHistory.
type feeHistory struct {
	OldestBlock      *hexutil.Big     `json:"oldestBlock"`
	Reward           [][]*hexutil.Big `json:"reward,omitempty"`
	BaseFee          []*hexutil.Big   `json:"baseFeePerGas,omitempty"`
	GasUsedRatio     []float64        `json:"gasUsedRatio"`
	BlobBaseFee      []*hexutil.Big   `json:"baseFeePerBlobGas,omitempty"`
	BlobGasUsedRatio []float64        `json:"blobGasUsedRatio,omitempty"`
}

// FeeHistory implements eth_feeHistory.
func (f *ethFees) FeeHistory(ctx context.Context, blocks math.HexOrDecimal64, last rpc.BlockNumber, percentiles []float64) (_ *feeHistory, err error) {
	defer ledger.Recover(&err)
	if err := f.limits.call(ctx, "eth_feeHistory", 0); err != nil {
		return nil, err
	}
	oldest, rewards, baseFees, used, blobFees, blobUsed, err := f.current().FeeHistory(ctx, uint64(blocks), last, percentiles)
	if err != nil {
		return nil, err
	}
	// go-ethereum's oracle computes the base fee of the next block by Ethereum's rule. The
	// chain may have another rule, so this replaces the value.
	if newest := f.node.BlockByNumber(oldest.Uint64() + uint64(len(used)) - 1); newest != nil && len(used) > 0 {
		baseFees[len(used)] = f.node.BaseFeeAfter(newest.Header())
	}
	h := &feeHistory{
		OldestBlock: (*hexutil.Big)(oldest), BaseFee: hexBigs(baseFees), GasUsedRatio: used,
		BlobBaseFee: hexBigs(blobFees), BlobGasUsedRatio: blobUsed,
	}
	for _, row := range rewards {
		h.Reward = append(h.Reward, hexBigs(row))
	}
	return h, nil
}

func hexBigs(values []*big.Int) []*hexutil.Big {
	out := make([]*hexutil.Big, len(values))
	for i, v := range values {
		out[i] = (*hexutil.Big)(v)
	}
	return out
}

// feeBackend gives go-ethereum's oracle access to the node's blocks.
type feeBackend struct{ *api }

func (b feeBackend) HeaderByNumber(_ context.Context, number rpc.BlockNumber) (_ *types.Header, err error) {
	defer ledger.Recover(&err)
	block := b.node.Resolve(number)
	if block == nil {
		return nil, nil
	}
	return block.Header(), nil
}

func (b feeBackend) BlockByNumber(_ context.Context, number rpc.BlockNumber) (_ *types.Block, err error) {
	defer ledger.Recover(&err)
	block, err := whole(b.node.Resolve(number))
	if block == nil {
		return nil, err
	}
	return block.Block, nil
}

func (b feeBackend) GetReceipts(_ context.Context, hash common.Hash) (_ types.Receipts, err error) {
	defer ledger.Recover(&err)
	block, err := whole(b.node.BlockByHash(hash))
	switch {
	case err != nil:
		return nil, err
	case block == nil:
		return nil, errHeaderForHashNotFound
	}
	return block.Receipts, nil
}

func (b feeBackend) Pending() (*types.Block, types.Receipts, *state.StateDB) {
	block := b.node.Resolve(rpc.PendingBlockNumber)
	return block.Block, block.Receipts, nil
}

func (b feeBackend) ChainConfig() *params.ChainConfig { return b.node.ChainConfig() }

// SubscribeChainHeadEvent returns nil, so that the oracle never clears its cache. The
// node makes a new oracle instead when blocks have been replaced.
func (b feeBackend) SubscribeChainHeadEvent(chan<- core.ChainHeadEvent) event.Subscription {
	return nil
}
