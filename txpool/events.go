package txpool

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Kind says what happened to a transaction.
type Kind uint8

const (
	// Added: it was admitted.
	Added Kind = iota
	// Replaced: another one of the same sender and nonce took its place.
	Replaced
	// Dropped: it left for a reason.
	Dropped
	// Included: it left in a committed bundle.
	Included
)

// String returns the kind in lower case.
func (k Kind) String() string {
	names := [...]string{"added", "replaced", "dropped", "included"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Event tells what happened to a transaction. Every transaction that was added leaves by exactly one other event.
type Event struct {
	// Kind says what happened.
	Kind Kind
	// Tx is the transaction.
	Tx *types.Transaction
	// By is the hash of the replacing transaction, for Replaced.
	By common.Hash
	// Reason is why it was dropped, for Dropped: one of the package's errors, or the host's.
	Reason error
}
