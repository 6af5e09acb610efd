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

// tipBlocks is the number of recent blocks whose tips count.
const tipBlocks = 20

// feeHistory has the needed fields of the answer of eth_feeHistory.
type feeHistory struct {
	Rewards [][]*hexutil.Big `json:"reward"`       // by block and percentile
	Ratios  []float64        `json:"gasUsedRatio"` // by block
}

// median returns the median of the tips in the blocks that have transactions; 0 if the
// history has none.
func (h *feeHistory) median() *big.Int {
	var tips []*big.Int
	for i := range min(len(h.Ratios), len(h.Rewards)) {
		if of := h.Rewards[i]; h.Ratios[i] > 0 && len(of) > 0 && of[0] != nil {
			tips = append(tips, of[0].ToInt())
		}
	}
	if len(tips) == 0 {
		return new(big.Int)
	}
	slices.SortFunc(tips, (*big.Int).Cmp)
	return tips[len(tips)/2]
}

// tipAnswers has the answers about the tip. The first one that can be used counts: the
// history, the node's suggestion, its gas price.
type tipAnswers struct {
	history          feeHistory
	suggested, price hexutil.Big
	asked            []rpc.BatchElem // with their errors
}

const (
	methodHistory   = "eth_feeHistory"
	methodSuggested = "eth_maxPriorityFeePerGas"
	methodPrice     = "eth_gasPrice"
)

// calls returns the calls for the answers. Each may fail.
func (a *tipAnswers) calls(o *Options, price bool) (calls []rpc.BatchElem) {
	if o.Tip != nil {
		return nil
	}
	if o.TipPercentile > 0 {
		calls = append(calls, call(&a.history, methodHistory, hexutil.Uint64(tipBlocks), "latest", []float64{o.TipPercentile}))
	}
	calls = append(calls, call(&a.suggested, methodSuggested))
	if price {
		calls = append(calls, call(&a.price, methodPrice))
	}
	return calls
}

// failure returns the error of a call; nil if it was made and worked.
func (a *tipAnswers) failure(method string) error {
	at := slices.IndexFunc(a.asked, func(c rpc.BatchElem) bool { return c.Method == method })
	if at < 0 {
		return fmt.Errorf("%w: %s was not called", ErrNode, method)
	}
	return worked(a.asked[at : at+1])
}

// lacksSuggestion reports whether the node does not have the method for a suggestion.
func (a *tipAnswers) lacksSuggestion() bool {
	// Method not found (JSON-RPC 2.0), method not supported (EIP-1474).
	const notFound, notSupported = -32601, -32004
	var verdict rpc.Error
	return errors.As(a.failure(methodSuggested), &verdict) && (verdict.ErrorCode() == notFound || verdict.ErrorCode() == notSupported)
}

// tip returns the tip, in wei per gas, on top of the base fee.
func (a *tipAnswers) tip(o *Options, baseFee *uint256.Int) (out uint256.Int, err error) {
	if o.Tip != nil {
		return *o.Tip, nil
	}
	tip := new(big.Int)
	if a.failure(methodHistory) == nil {
		tip = a.history.median()
	}
	failed := a.failure(methodSuggested)
	switch {
	case tip.Sign() > 0:
	case failed == nil:
		tip = a.suggested.ToInt()
	case a.failure(methodPrice) == nil:
		if tip = new(big.Int).Sub(a.price.ToInt(), baseFee.ToBig()); tip.Sign() < 0 {
			tip.SetUint64(0)
		}
	default:
		return out, failed
	}
	if tip.Sign() < 0 || out.SetFromBig(tip) {
		return out, fmt.Errorf("%w: tip %v", ErrNode, tip)
	}
	return out, nil
}
