package ethchain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
	"golang.org/x/sync/semaphore"

	"github.com/jamq/jamq/eoa"
)

// header has the needed fields of a block.
type header struct {
	Number   *hexutil.Uint64 `json:"number"`
	Hash     *common.Hash    `json:"hash"`
	GasLimit hexutil.Uint64  `json:"gasLimit"`
	BaseFee  *hexutil.Big    `json:"baseFeePerGas"`
}

// headAnswers has the answers about the chain that a look needs.
type headAnswers struct {
	latest, final header
	tip           tipAnswers
	blobFee       hexutil.Big
}

// calls returns the calls for the answers. optional may fail.
func (h *headAnswers) calls(o *Options, blobs bool) (needed, optional []rpc.BatchElem) {
	needed = []rpc.BatchElem{call(&h.latest, "eth_getBlockByNumber", "latest", false)}
	if o.FinalityDepth == 0 {
		needed = append(needed, call(&h.final, "eth_getBlockByNumber", "finalized", false))
	}
	if blobs {
		optional = append(optional, call(&h.blobFee, "eth_blobBaseFee"))
	}
	return needed, optional
}

// look returns the part of a look that is the same for all accounts.
func (h *headAnswers) look(o *Options) (l eoa.Look, err error) {
	if h.latest.Number == nil {
		return l, fmt.Errorf("%w: no latest block", ErrNode)
	}
	l.Number, l.GasLimit = uint64(*h.latest.Number), uint64(h.latest.GasLimit)
	switch {
	case o.FinalityDepth > 0:
		l.Finalized = l.Number - min(l.Number, o.FinalityDepth)
	case h.final.Number != nil: // otherwise a young chain: nothing is final
		l.Finalized = uint64(*h.final.Number)
	}
	if l.Finalized > l.Number {
		return l, fmt.Errorf("%w: final block %d, latest %d", ErrNode, l.Finalized, l.Number)
	}
	if h.latest.BaseFee != nil && l.BaseFee.SetFromBig(h.latest.BaseFee.ToInt()) {
		return l, fmt.Errorf("%w: base fee %v", ErrNode, h.latest.BaseFee)
	}
	if l.Tip, err = h.tip.tip(o, &l.BaseFee); err != nil {
		return l, err
	}
	if l.BlobFee.SetFromBig(h.blobFee.ToInt()) {
		return l, fmt.Errorf("%w: blob fee %v", ErrNode, &h.blobFee)
	}
	return l, nil
}

// accountAnswers has the answers about the account; nil if the node gave none.
type accountAnswers struct {
	count, pending, final *hexutil.Uint64
	balance               *hexutil.Big
	code                  hexutil.Bytes

	asked []rpc.BatchElem // optional calls
}

// calls returns the calls for the answers at the latest block. at is its tag or
// its height. A look can do without the answers to the optional ones.
func (c *accountAnswers) calls(a common.Address, at any) (needed, optional []rpc.BatchElem) {
	return []rpc.BatchElem{call(&c.count, "eth_getTransactionCount", a, at), call(&c.balance, "eth_getBalance", a, at)},
		[]rpc.BatchElem{call(&c.pending, "eth_getTransactionCount", a, "pending"), call(&c.code, "eth_getCode", a, at)}
}

// add completes a look with the answers. Some nodes refuse the tag "pending",
// because they have no pool: the account then has nothing pending. A node that
// asks to wait may have a pool.
func (c *accountAnswers) add(o *Options, l *eoa.Look) error {
	for i := range c.asked {
		var busy *eoa.BusyError
		if err := worked(c.asked[i : i+1]); errors.As(err, &busy) {
			return err
		}
	}
	if c.count == nil || c.final == nil {
		return fmt.Errorf("%w: no transaction count", ErrNode)
	}
	l.Latest, l.Final, l.Delegated = uint64(*c.count), uint64(*c.final), len(c.code) > 0
	l.Preconfirmed, l.Pending = l.Latest, l.Latest
	if c.pending != nil {
		l.Pending = max(l.Latest, uint64(*c.pending))
	}
	if o.Preconfirmed {
		l.Preconfirmed = l.Pending
	}
	if l.Final > l.Latest {
		return fmt.Errorf("%w: final count %d, latest %d", ErrNode, l.Final, l.Latest)
	}
	if c.balance == nil {
		return nil // unknown
	}
	var over bool
	if l.Balance, over = uint256.FromBig(c.balance.ToInt()); over {
		return fmt.Errorf("%w: balance %v", ErrNode, c.balance)
	}
	return nil
}

// Look implements eoa.Chain.
func (c *Chain) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	return c.look(ctx, a, false)
}

// LookBlobs implements [eoa.BlobChain]. The price of blobs is fetched in the
// same batch. If the node does not know it, BlobFee is 0.
func (c *Chain) LookBlobs(ctx context.Context, a common.Address) (eoa.Look, error) {
	return c.look(ctx, a, true)
}

func (c *Chain) look(ctx context.Context, a common.Address, blobs bool) (eoa.Look, error) {
	if c.o.HeadAge > 0 {
		if l, err := c.lookShared(ctx, a, blobs); err == nil || ctx.Err() != nil {
			return l, err
		}
		// Another node of a gateway may lack the block.
	}
	var account accountAnswers
	calls, optional := account.calls(a, "latest")
	if c.o.FinalityDepth == 0 {
		calls = append(calls, call(&account.final, "eth_getTransactionCount", a, "finalized"))
	}
	head, err := c.askHead(ctx, blobs, calls, &optional)
	if err != nil {
		return eoa.Look{}, err
	}
	account.asked = optional
	l, err := head.look(&c.o)
	switch {
	case err != nil:
		return eoa.Look{}, err
	case c.o.FinalityDepth == 0 && head.final.Number == nil, l.Number < c.o.FinalityDepth:
		account.final = new(hexutil.Uint64) // a young chain
	case c.o.FinalityDepth > 0:
		if err := c.do(ctx, call(&account.final, "eth_getTransactionCount", a, hexutil.Uint64(l.Finalized))); err != nil {
			return eoa.Look{}, err
		}
	}
	err = account.add(&c.o, &l)
	return l, err
}

// askHead returns the answers about the chain. It makes more calls in the same batch, and
// replaces those in mayFail by the calls that were made. It returns an error if a needed
// call fails.
func (c *Chain) askHead(ctx context.Context, blobs bool, more []rpc.BatchElem, mayFail *[]rpc.BatchElem) (*headAnswers, error) {
	for price := c.needsPrice.Load(); ; price = true {
		h := new(headAnswers)
		calls, optional := h.calls(&c.o, blobs)
		calls = append(calls, more...)
		needed := len(calls)
		tips := h.tip.calls(&c.o, price)
		calls = slices.Concat(calls, tips, optional, *mayFail)
		if err := c.batch(ctx, calls); err != nil {
			return nil, err
		}
		h.tip.asked = calls[needed : needed+len(tips)]
		*mayFail = calls[len(calls)-len(*mayFail):]
		lacks := h.tip.lacksSuggestion()
		if c.needsPrice.Store(lacks); price || !lacks {
			return h, worked(calls[:needed])
		}
	}
}

// sharedHead is the part of a look that is the same for all accounts.
type sharedHead struct {
	turn  *semaphore.Weighted // held while look is read or fetched
	look  eoa.Look
	blobs bool // look has the price of blobs
	at    time.Time
}

// lookShared takes a look at the shared head: it asks for the account at the
// heights of that head, so that the counts belong to its blocks.
func (c *Chain) lookShared(ctx context.Context, a common.Address, blobs bool) (eoa.Look, error) {
	l, err := c.head(ctx, blobs)
	if err != nil {
		return eoa.Look{}, err
	}
	var account accountAnswers
	needed, optional := account.calls(a, hexutil.Uint64(l.Number))
	needed = append(needed, call(&account.final, "eth_getTransactionCount", a, hexutil.Uint64(l.Finalized)))
	calls := append(needed, optional...)
	if err := c.batch(ctx, calls); err != nil {
		return eoa.Look{}, err
	}
	if err := worked(calls[:len(needed)]); err != nil {
		return eoa.Look{}, err
	}
	account.asked = calls[len(needed):]
	err = account.add(&c.o, &l)
	return l, err
}

// head returns the shared head. It fetches it if it is too old.
func (c *Chain) head(ctx context.Context, blobs bool) (eoa.Look, error) {
	s := &c.shared
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return eoa.Look{}, err
	}
	defer s.turn.Release(1)
	if age := time.Since(s.at); age < c.o.HeadAge && (s.blobs || !blobs) {
		return s.look, nil
	}
	now := time.Now()
	answers, err := c.askHead(ctx, blobs || s.blobs, nil, new([]rpc.BatchElem))
	if err != nil {
		return eoa.Look{}, err
	}
	l, err := answers.look(&c.o)
	if err == nil {
		s.look, s.at, s.blobs = l, now, blobs || s.blobs
	}
	return l, err
}
