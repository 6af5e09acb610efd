package txpool

import "math/big"

// Budget bounds a block. A field that is 0 is no bound.
type Budget struct {
	// Count is the maximum number of transactions.
	Count int
	// Gas bounds the gas that the transactions use. A transaction may start if
	// its gas limit fits into the rest. Bytes bounds the bytes that they use,
	// and DABytes the sum of Config.DASize. A transaction may start if its
	// encoding fits into the rest of Bytes.
	Gas, Bytes, DABytes uint64
	// BaseFee is the base fee of the block, in wei per gas. Transactions that
	// do not pay it are skipped. It does not change the order, and parked
	// transactions stay parked: see Head.BaseFee. Nil means the one of the last
	// Reset.
	BaseFee *big.Int
}
