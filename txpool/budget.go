package txpool

import (
	"math/big"

	"github.com/ethereum/go-ethereum/core/types"
)

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

// SkipReason is why a session passed over a transaction.
type SkipReason string

const (
	// SkipGas means that the gas limit did not fit into the rest of the budget.
	SkipGas SkipReason = "gas"
	// SkipBytes means that the encoding did not fit into the rest of the budget.
	SkipBytes SkipReason = "bytes"
	// SkipDABytes means that Config.DASize did not fit into the rest of the
	// budget.
	SkipDABytes SkipReason = "da bytes"
	// SkipBaseFee means that the transaction does not pay Budget.BaseFee.
	SkipBaseFee SkipReason = "base fee"
	// SkipAncestor means that an earlier transaction of the sender was skipped,
	// failed or postponed.
	SkipAncestor SkipReason = "ancestor"
	// SkipOrder means that the session has a later transaction of the sender.
	SkipOrder SkipReason = "order"
	// SkipChanged means that the account's current nonce or balance does not
	// allow the transaction.
	SkipChanged SkipReason = "changed"
	// SkipLater means that the builder postponed the transaction.
	SkipLater SkipReason = "later"
)

// Skip is a transaction Tx that a session passed over, with the Reason.
type Skip struct {
	Tx     *types.Transaction
	Reason SkipReason
}

// maxSkips is the maximum number of skipped transactions in a session.
const maxSkips = 4096
