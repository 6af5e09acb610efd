package ethchain

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/eoa"
)

// header has those fields of a block that the chain uses.
type header struct {
	Number   *hexutil.Uint64 `json:"number"`
	Hash     *common.Hash    `json:"hash"`
	GasLimit hexutil.Uint64  `json:"gasLimit"`
	BaseFee  *hexutil.Big    `json:"baseFeePerGas"`
}

// lookAnswers has the node's answers to the calls that Look makes. A pointer is nil
// if the node answered null, or did not answer.
type lookAnswers struct {
	latest, finalized     header
	count, final, pending *hexutil.Uint64
	balance               *hexutil.Big
	tip, blobFee          hexutil.Big
	code                  hexutil.Bytes
}

// calls returns the calls of a Look; the first needed of them must succeed.
func (got *lookAnswers) calls(o *Options, a common.Address) (calls []rpc.BatchElem, needed int) {
	calls = []rpc.BatchElem{
		call(&got.latest, "eth_getBlockByNumber", "latest", false),
		call(&got.count, "eth_getTransactionCount", a, "latest"), call(&got.balance, "eth_getBalance", a, "latest"),
	}
	if o.FinalityDepth == 0 {
		calls = append(calls, call(&got.finalized, "eth_getBlockByNumber", "finalized", false), call(&got.final, "eth_getTransactionCount", a, "finalized"))
	}
	needed = len(calls)
	// Look relies on the order of the optional calls: the tip first, and the price
	// of blobs last.
	return append(calls, call(&got.tip, "eth_maxPriorityFeePerGas"), call(&got.pending, "eth_getTransactionCount", a, "pending"),
		call(&got.code, "eth_getCode", a, "latest"), call(&got.blobFee, "eth_blobBaseFee")), needed
}

// Look implements [eoa.Chain]. BlobFee is 0 if the node does not know the price of
// blobs. If the node suggests no tip, the tip is the node's gas price minus the
// base fee.
func (c *Chain) Look(ctx context.Context, a common.Address) (l eoa.Look, err error) {
	var got lookAnswers
	calls, needed := got.calls(&c.o, a)
	if err := c.batch(ctx, calls); err != nil {
		return l, err
	}
	if err := worked(calls[:needed]); err != nil {
		return l, err
	}
	for i := needed; i < len(calls)-1; i++ { // a busy node may know the answer later
		var busy *eoa.BusyError
		if err := worked(calls[i : i+1]); errors.As(err, &busy) {
			return l, err
		}
	}
	if err := got.chain(&c.o, &l); err != nil {
		return l, err
	}
	if err := c.setTip(ctx, &got, worked(calls[needed:needed+1]), &l); err != nil {
		return l, err
	}
	switch {
	case c.o.FinalityDepth == 0 && got.finalized.Number == nil, l.Number < c.o.FinalityDepth:
		got.final = new(hexutil.Uint64) // the chain is young, and no block is final yet
	case c.o.FinalityDepth > 0:
		if err := c.do(ctx, call(&got.final, "eth_getTransactionCount", a, hexutil.Uint64(l.Finalized))); err != nil {
			return l, err
		}
	}
	return l, got.account(&c.o, &l)
}

// chain sets the fields of a Look that do not depend on the account: heights, gas limit
// and prices, except the tip.
func (got *lookAnswers) chain(o *Options, l *eoa.Look) error {
	if got.latest.Number == nil {
		return fmt.Errorf("%w: no latest block", ErrNode)
	}
	l.Number, l.GasLimit = uint64(*got.latest.Number), uint64(got.latest.GasLimit)
	switch {
	case o.FinalityDepth > 0:
		l.Finalized = l.Number - min(l.Number, o.FinalityDepth)
	case got.finalized.Number != nil:
		l.Finalized = uint64(*got.finalized.Number)
	}
	if l.Finalized > l.Number {
		return fmt.Errorf("%w: final block %d, latest %d", ErrNode, l.Finalized, l.Number)
	}
	if got.latest.BaseFee != nil && l.BaseFee.SetFromBig(got.latest.BaseFee.ToInt()) {
		return fmt.Errorf("%w: base fee %v", ErrNode, got.latest.BaseFee)
	}
	if l.BlobFee.SetFromBig(got.blobFee.ToInt()) {
		return fmt.Errorf("%w: blob fee %v", ErrNode, &got.blobFee)
	}
	return nil
}

// setTip sets the tip of a Look.
func (c *Chain) setTip(ctx context.Context, got *lookAnswers, missing error, l *eoa.Look) error {
	tip := got.tip.ToInt()
	// If the node suggests no tip, the tip is the gas price minus the base fee.
	if missing != nil {
		var price hexutil.Big
		if err := c.do(ctx, call(&price, "eth_gasPrice")); err != nil {
			return errors.Join(missing, err)
		}
		if tip = new(big.Int).Sub(price.ToInt(), l.BaseFee.ToBig()); tip.Sign() < 0 {
			tip = new(big.Int)
		}
	}
	if tip.Sign() < 0 || l.Tip.SetFromBig(tip) {
		return fmt.Errorf("%w: tip %v", ErrNode, tip)
	}
	return nil
}

// account sets the fields of a Look that belong to the account.
func (got *lookAnswers) account(o *Options, l *eoa.Look) error {
	if got.count == nil || got.final == nil {
		return fmt.Errorf("%w: no transaction count", ErrNode)
	}
	l.Latest, l.Final, l.Delegated = uint64(*got.count), uint64(*got.final), len(got.code) > 0
	l.Preconfirmed, l.Pending = l.Latest, l.Latest
	// Some nodes have no pool and refuse the tag "pending". Their accounts count as
	// having no transactions in the pool.
	if got.pending != nil {
		l.Pending = max(l.Latest, uint64(*got.pending))
	}
	if o.Preconfirmed {
		l.Preconfirmed = l.Pending
	}
	if l.Final > l.Latest {
		return fmt.Errorf("%w: final count %d, latest %d", ErrNode, l.Final, l.Latest)
	}
	if got.balance == nil {
		return nil // unknown
	}
	var over bool
	if l.Balance, over = uint256.FromBig(got.balance.ToInt()); over {
		return fmt.Errorf("%w: balance %v", ErrNode, got.balance)
	}
	return nil
}
