package ethchain

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/eoa"
)

const (
	// maxScan is the largest number of blocks whose transactions are read to
	// find one, and scanned the number that is read in a batch.
	maxScan, scanned = 256, 8
	// countsAtOnce is the number of heights between which one batch of counts
	// decides.
	countsAtOnce = 16
)

// body has the needed fields of a block with its transactions.
type body struct {
	Number       *hexutil.Uint64 `json:"number"`
	Transactions []struct {
		Hash  common.Hash    `json:"hash"`
		From  common.Address `json:"from"`
		Nonce hexutil.Uint64 `json:"nonce"`
	} `json:"transactions"`
}

// users finds the transactions with the nonces in question. It leaves out the
// nonces about which the node cannot tell, and those that it has not used.
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
			// The node is behind, or on another chain than the one that said so.
			// It would find no transaction with the nonce.
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

// narrow returns the block that used a nonce, as the range after < block ≤
// upTo. The range is larger than one block if the node has no states of some
// heights.
func (c *Chain) narrow(ctx context.Context, a common.Address, used eoa.UsedNonce) (after, upTo uint64, err error) {
	if after, upTo = used.After, used.UpTo; after >= upTo {
		after = 0
	}
	for upTo-after > 1 {
		step := (upTo - after + countsAtOnce - 1) / countsAtOnce
		counts := make([]hexutil.Uint64, (upTo-after-1)/step)
		calls := make([]rpc.BatchElem, len(counts))
		for i := range calls {
			calls[i] = call(&counts[i], "eth_getTransactionCount", a, hexutil.Uint64(after+uint64(i+1)*step))
		}
		if err := c.batch(ctx, calls); err != nil {
			return 0, 0, err
		}
		from, narrowed := after, false
		for i := range calls {
			height := from + uint64(i+1)*step
			if calls[i].Error != nil {
				continue // the state is gone
			}
			narrowed = true
			if uint64(counts[i]) > used.Nonce {
				upTo = height
				break
			}
			after = height
		}
		if !narrowed {
			break
		}
	}
	return after, upTo, nil
}

// scan searches the blocks after < block ≤ upTo for the account's transaction
// with a nonce. known is false if there are too many blocks, or the node does
// not have all of them.
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
