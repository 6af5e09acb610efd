package main

import (
	"math"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/txpool"
)

// oracleFirst puts transactions to one contract before all others, and orders
// equal ones by tip. It decides the order of blocks only. Eviction from a full
// pool depends on the price, so the contract's transactions cannot displace
// others.
type oracleFirst struct{ contract common.Address }

// Score implements txpool.Ordering.
func (o oracleFirst) Score(c txpool.Candidate) int64 {
	score := int64(c.Tip >> 2) // at most 2^62
	if to := c.Tx.To(); to != nil && *to == o.contract {
		score += math.MaxInt64 / 2
	}
	return score
}

// Bonus implements txpool.Ordering. Age does not matter.
func (o oracleFirst) Bonus(time.Duration) int64 { return 0 }
