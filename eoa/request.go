package eoa

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Account names a sender: one logical worker each.
type Account struct {
	// ChainID is the chain, Address the account on it.
	ChainID uint64
	Address common.Address
}

// Request is what a user wants sent. Key and payload together are idempotent: the same key with another payload is an error.
type Request struct {
	// Key is the caller's, unique per account.
	Key string
	// To is nil for a contract creation.
	To *common.Address
	// Value is in wei; nil means 0.
	Value *uint256.Int
	// Data is the input.
	Data []byte
	// Gas is the gas limit; 0 means that it is estimated.
	Gas uint64
	// MaxFee is the greatest price per gas that may ever be paid, in wei; nil means no limit.
	MaxFee *uint256.Int
	// Deadline is when a request that has no nonce yet fails; zero means never.
	Deadline time.Time
}

// Attempt is one signed transaction of a request. All are kept: any of them may be the one that is mined.
type Attempt struct {
	// Hash is the transaction's, Raw its bytes as they are sent.
	Hash common.Hash
	Raw  []byte
	// Fees are its prices.
	Fees Fees
	// SentAt is when it was last given to a node, zero for never; Result what that came to.
	SentAt time.Time
	Result SendResult
}

// Record is a request with what became of it.
type Record struct {
	Request
	// ID is the store's, in the order of acceptance.
	ID uint64
	// State is where it stands.
	State State
	// Nonce is bound from Prepared on.
	Nonce uint64
	// Attempts are all signed transactions, oldest first.
	Attempts []Attempt
	// Height is the block of Mined and later states.
	Height uint64
}

// Chain is what an executor asks of a node. Every method may fail, and a failure of Send says nothing about where the bytes are.
type Chain interface {
	// Nonce returns how many transactions of the account a block has included: at the latest one, or with those the node expects.
	Nonce(ctx context.Context, a common.Address, preconfirmed bool) (uint64, error)
	// Send gives a signed transaction to the node.
	Send(ctx context.Context, raw []byte) (SendResult, error)
	// Receipt returns a mined transaction's receipt, or nil for one that is in no block.
	Receipt(ctx context.Context, tx common.Hash) (*types.Receipt, error)
	// Head returns the number of the latest and of the finalized block.
	Head(ctx context.Context) (latest, finalized uint64, err error)
}

// Signer signs for accounts. Its result is checked against what was asked.
type Signer interface {
	// Sign returns the transaction signed by the account's key.
	Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error)
}

// Clock gives the time, so that tests can.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
}
