package ethchain

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/eoa"
)

const (
	// maxScan is how many blocks one Ask reads at most to find transactions, because reading
	// more would take too long. scanned is how many of them it reads in one batch.
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

// user returns the account's transaction with the nonce, if the block has one.
func (b *body) user(a common.Address, nonce uint64) (user common.Hash, found bool) {
	for _, tx := range b.Transactions {
		if tx.From == a && uint64(tx.Nonce) == nonce {
			return tx.Hash, true
		}
	}
	return user, false
}

// search finds the block in which a nonce was used, somewhere in after < block ≤
// upTo. All searches of an Ask share their calls, so that many lost nonces take
// hardly more round trips than one.
type search struct {
	nonce, after, upTo uint64
	// low is the lower end of the binary search. It can be above after, because a node drops
	// old states and cannot answer for the blocks in between.
	low uint64
}

// narrowed reports whether no further count can make the range smaller.
func (s *search) narrowed() bool { return s.upTo-s.low <= 1 }

// middle returns the height of the next count.
func (s *search) middle() uint64 { return s.low + (s.upTo-s.low)/2 }

// learn narrows the range with the account's transaction count at the middle block.
func (s *search) learn(count uint64, known bool) {
	middle := s.middle()
	switch {
	case !known:
		// The node has dropped the state of this block, and of all older ones. Continue above
		// it.
		s.low = middle
	case count > s.nonce:
		s.upTo = middle
	default:
		s.low, s.after = middle, middle
	}
}

// users finds the transactions that have used the given nonces.
func (c *Chain) users(ctx context.Context, out *eoa.Answers, a common.Address, nonces []eoa.UsedNonce) error {
	if len(nonces) == 0 {
		return nil
	}
	var count *hexutil.Uint64
	if err := c.do(ctx, call(&count, "eth_getTransactionCount", a, "latest")); err != nil {
		return err
	}
	var searches []*search
	for _, used := range nonces {
		if count == nil || uint64(*count) <= used.Nonce {
			// By this node's count the nonce is not used, so the node is behind or on another
			// chain and cannot help.
			continue
		}
		s := &search{nonce: used.Nonce, after: used.After, upTo: used.UpTo}
		if s.after >= s.upTo {
			s.after = 0
		}
		s.low = s.after
		searches = append(searches, s)
	}
	if err := c.narrow(ctx, a, searches); err != nil {
		return err
	}
	return c.scan(ctx, out, a, searches)
}

// narrow makes the range of each search as small as the node's states allow.
func (c *Chain) narrow(ctx context.Context, a common.Address, searches []*search) error {
	for {
		// Compare the account's transaction counts at the middle of each range.
		var heights []uint64
		for _, s := range searches {
			if !s.narrowed() {
				heights = append(heights, s.middle())
			}
		}
		if len(heights) == 0 {
			return nil
		}
		slices.Sort(heights)
		heights = slices.Compact(heights)
		counts := make([]hexutil.Uint64, len(heights))
		calls := make([]rpc.BatchElem, len(heights))
		for i, height := range heights {
			calls[i] = call(&counts[i], "eth_getTransactionCount", a, hexutil.Uint64(height))
		}
		if err := c.batch(ctx, calls); err != nil {
			return err
		}
		for _, s := range searches {
			if !s.narrowed() {
				i, _ := slices.BinarySearch(heights, s.middle())
				s.learn(uint64(counts[i]), calls[i].Error == nil)
			}
		}
	}
}

// scan reads the blocks of the searches, and finds the transactions with the
// nonces.
func (c *Chain) scan(ctx context.Context, out *eoa.Answers, a common.Address, searches []*search) error {
	// If more than maxScan blocks could contain the transaction, the search ends without an
	// answer, because reading all of them would take too long.
	open := slices.DeleteFunc(searches, func(s *search) bool { return s.upTo-s.after > maxScan })
	// Searches that are open after maxScan blocks wait for the next Ask.
	for read := 0; len(open) > 0 && read < maxScan; {
		var heights []uint64
		for _, s := range open {
			for height := s.after + 1; height <= min(s.after+scanned, s.upTo); height++ {
				heights = append(heights, height)
			}
		}
		// Read each block once, and the lowest blocks first.
		slices.Sort(heights)
		heights = slices.Compact(heights)
		heights = heights[:min(scanned, len(heights))]
		bodies := make([]*body, len(heights))
		calls := make([]rpc.BatchElem, len(heights))
		for i, height := range heights {
			calls[i] = call(&bodies[i], "eth_getBlockByNumber", hexutil.Uint64(height), true)
		}
		if err := c.batch(ctx, calls); err != nil {
			return err
		}
		for i, b := range bodies {
			if calls[i].Error != nil || b == nil || b.Number == nil || uint64(*b.Number) != heights[i] {
				bodies[i] = nil
				continue
			}
			read++
		}
		open = slices.DeleteFunc(open, func(s *search) bool {
			for ; s.after < s.upTo; s.after++ {
				i, asked := slices.BinarySearch(heights, s.after+1)
				if !asked {
					return false
				}
				// The node does not have this block, so the search ends without an
				// answer.
				if bodies[i] == nil {
					return true
				}
				if user, found := bodies[i].user(a, s.nonce); found {
					out.Users[s.nonce] = user
					return true
				}
			}
			// No transaction in the range has used the nonce.
			out.Users[s.nonce] = common.Hash{}
			return true
		})
	}
	return nil
}
