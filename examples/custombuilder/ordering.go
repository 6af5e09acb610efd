package main

import (
	"math"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/txpool"
)

// oracleFirst returns a score that puts transactions to one contract before all others,
// and orders equal ones by tip. It decides the order of blocks only. Eviction from a
// full pool depends on the price, so the contract's transactions cannot displace
// others.
func oracleFirst(contract common.Address) func(txpool.Candidate) int64 {
	return func(c txpool.Candidate) int64 {
		score := int64(c.Tip >> 2) // at most 2^62
		if to := c.Tx.To(); to != nil && *to == contract {
			score += math.MaxInt64 / 2
		}
		return score
	}
}
