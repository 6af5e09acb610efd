package ethchain

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/eoa"
)

const (
	// maxScan limits how many blocks are read to find a transaction. scanned is how
	// many of them are read in a batch.
	maxScan, scanned = 256, 8
)

// body has those fields of a block and its transactions that scan uses.
type body struct {
	Number       *hexutil.Uint64 `json:"number"`
	Transactions []struct {
		Hash  common.Hash    `json:"hash"`
		From  common.Address `json:"from"`
		Nonce hexutil.Uint64 `json:"nonce"`
	} `json:"transactions"`
}

// users finds the transactions that have used the given nonces. It leaves out a
// nonce if the node does not know the transaction, or if according to the node the
// nonce is not used yet.
func (c *Chain) users(ctx context.Context, out *eoa.Answers, a common.Address, nonces []eoa.UsedNonce) error {
	if len(nonces) == 0 {
		return nil
	}
	var count *hexutil.Uint64
	if err := c.do(ctx, call(&count, "eth_getTransactionCount", a, "latest")); err != nil {
		return err
	}
	for _, used := range nonces {
		if count == nil || uint64(*count) <= used.Nonce {
			// The node is behind or on another chain, so it would find no
			// transaction with the nonce.
			continue
		}
		after, upTo, err := c.narrow(ctx, a, used)
		if err != nil {
			return err
		}
		user, known, err := c.scan(ctx, a, used.Nonce, after, upTo)
		if err != nil {
			return err
		}
		if known {
			out.Users[used.Nonce] = user
		}
	}
	return nil
}

// narrow searches for the block that used a nonce, by comparing the account's
// transaction counts at several heights. The block is in the range after < block ≤
// upTo. The range contains several blocks if the node no longer has the states at
// the lower heights.
func (c *Chain) narrow(ctx context.Context, a common.Address, used eoa.UsedNonce) (after, upTo uint64, err error) {
	if after, upTo = used.After, used.UpTo; after >= upTo {
		after = 0
	}
	for low := after; upTo-low > 1; {
		middle := low + (upTo-low)/2
		var count hexutil.Uint64
		calls := []rpc.BatchElem{call(&count, "eth_getTransactionCount", a, hexutil.Uint64(middle))}
		if err := c.batch(ctx, calls); err != nil {
			return 0, 0, err
		}
		switch {
		case calls[0].Error != nil: // the node no longer has the state
			low = middle
		case uint64(count) > used.Nonce:
			upTo = middle
		default:
			low, after = middle, middle
		}
	}
	return after, upTo, nil
}

// scan reads the blocks after < block ≤ upTo and searches them for the account's
// transaction with the nonce. known is false if there are too many blocks, or if
// the node does not have all of them.
func (c *Chain) scan(ctx context.Context, a common.Address, nonce, after, upTo uint64) (user common.Hash, known bool, err error) {
	if upTo-after > maxScan {
		return user, false, nil
	}
	for ; after < upTo; after += min(scanned, upTo-after) {
		bodies := make([]*body, min(scanned, upTo-after))
		calls := make([]rpc.BatchElem, len(bodies))
		for i := range calls {
			calls[i] = call(&bodies[i], "eth_getBlockByNumber", hexutil.Uint64(after+uint64(i)+1), true)
		}
		if err := c.batch(ctx, calls); err != nil {
			return user, false, err
		}
		for i, b := range bodies {
			if calls[i].Error != nil || b == nil || b.Number == nil || uint64(*b.Number) != after+uint64(i)+1 {
				return user, false, nil
			}
			for _, tx := range b.Transactions {
				if tx.From == a && uint64(tx.Nonce) == nonce {
					return tx.Hash, true, nil
				}
			}
		}
	}
	return user, true, nil
}
