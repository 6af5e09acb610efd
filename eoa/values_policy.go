// go test ./internal/tidy -update writes this file from eoa/internal/account/policy.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// FeePolicy decides when a transaction that is not mined is replaced at a
// higher price, and at which. DefaultConfig has the defaults.
//
//	type FeePolicy struct {
//		// StallTimeout is how long the account's transaction count may stay
//		// unchanged with transactions in flight before the first of them is bumped,
//		// and those behind it that pay too little for today's prices; positive.
//		// The wait doubles with each bump of a transaction, up to 64 times
//		// StallTimeout. The default is 5 minutes.
//		StallTimeout time.Duration
//		// BumpPercent is the minimum price increase of a bump, in percent;
//		// 10 to 1000. With blobs it is at least 100. If the price would exceed a
//		// limit, it becomes the limit, as long as that is 10 % more. go-ethereum's
//		// pool refuses smaller increases. The default is 20.
//		BumpPercent uint64
//		// MaxFee is the highest price per gas that is ever offered, in wei; nil
//		// means no limit. The lower of MaxFee and Request.MaxFee applies.
//		MaxFee *uint256.Int
//		// MaxBlobFee is the highest price per blob gas that is ever offered, in
//		// wei; nil means no limit. The lower of MaxBlobFee and Request.MaxBlobFee
//		// applies.
//		MaxBlobFee *uint256.Int
//	}
//
//	// Validate returns an error that lists each field out of range, with its value
//	// and the allowed range. The error wraps ErrInvalidConfig.
//	func (p *FeePolicy) Validate() error
type FeePolicy = account.FeePolicy
