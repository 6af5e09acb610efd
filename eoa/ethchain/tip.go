package ethchain

import (
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
)

// tipSource is a way to a tip. The chain uses the first one that the options want and
// the node has.
type tipSource int32

const (
	tipHistory   tipSource = iota // the tips of transactions of recent blocks
	tipSuggested                  // the node's suggestion
	tipPrice                      // the node's suggested price, without the base fee
	tipFixed                      // Options.Tip
)

// tipBlocks is the number of recent blocks whose tips count.
const tipBlocks = 20

// firstTip returns the first source that the options want.
func (o *Options) firstTip() tipSource {
	switch {
	case o.Tip != nil:
		return tipFixed
	case o.TipPercentile > 0:
		return tipHistory
	}
	return tipSuggested
}

// feeHistory has the needed fields of the answer of eth_feeHistory.
type feeHistory struct {
	Rewards [][]*hexutil.Big `json:"reward"`       // by block and percentile
	Ratios  []float64        `json:"gasUsedRatio"` // by block
}

// median returns the median of the blocks' tips; 0 if all blocks are empty.
func (h *feeHistory) median() (*big.Int, error) {
	tips := []*big.Int{}
	for i, ratio := range h.Ratios {
		if i >= len(h.Rewards) {
			return nil, fmt.Errorf("%w: tips of %d blocks, want %d", ErrNode, len(h.Rewards), len(h.Ratios))
		}
		if of := h.Rewards[i]; ratio > 0 && len(of) > 0 && of[0] != nil {
			tips = append(tips, of[0].ToInt())
		}
	}
	if len(tips) == 0 {
		return new(big.Int), nil
	}
	slices.SortFunc(tips, (*big.Int).Cmp)
	return tips[len(tips)/2], nil
}

// tipAnswer has the answer of one source.
type tipAnswer struct {
	source  tipSource
	price   hexutil.Big
	history feeHistory
}

// method returns the JSON-RPC method of the source; empty if it needs none.
func (s tipSource) method() string {
	return [...]string{"eth_feeHistory", "eth_maxPriorityFeePerGas", "eth_gasPrice", ""}[s]
}

// calls returns the calls for the answer: one or none.
func (a *tipAnswer) calls(o *Options) []rpc.BatchElem {
	switch a.source {
	case tipFixed:
		return nil
	case tipHistory:
		return []rpc.BatchElem{call(&a.history, a.source.method(), hexutil.Uint64(tipBlocks), "latest", []float64{o.TipPercentile})}
	}
	return []rpc.BatchElem{call(&a.price, a.source.method())}
}

// missing reports whether the node lacks the method of the source, and the next source
// must be used.
func (a *tipAnswer) missing(calls []rpc.BatchElem) bool {
	// Method not found (JSON-RPC 2.0), method not supported (EIP-1474).
	const notFound, notSupported = -32601, -32004
	at := slices.IndexFunc(calls, func(c rpc.BatchElem) bool { return c.Method == a.source.method() })
	var verdict rpc.Error
	if a.source >= tipPrice || at < 0 || !errors.As(calls[at].Error, &verdict) {
		return false
	}
	return verdict.ErrorCode() == notFound || verdict.ErrorCode() == notSupported
}

// tip returns the tip, in wei per gas, on top of the base fee.
func (a *tipAnswer) tip(o *Options, baseFee *uint256.Int) (out uint256.Int, err error) {
	tip := a.price.ToInt()
	switch a.source {
	case tipFixed:
		return *o.Tip, nil
	case tipHistory:
		if tip, err = a.history.median(); err != nil {
			return out, err
		}
	case tipPrice:
		if tip = new(big.Int).Sub(tip, baseFee.ToBig()); tip.Sign() < 0 {
			tip.SetUint64(0)
		}
	}
	if tip.Sign() < 0 || out.SetFromBig(tip) {
		return out, fmt.Errorf("%w: tip %v", ErrNode, tip)
	}
	return out, nil
}
