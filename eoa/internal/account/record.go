package account

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Attempt is one signed transaction of a request. A record keeps all attempts that
// a node may still have, because any of them may be mined.
type Attempt struct {
	// Hash is the transaction hash.
	Hash common.Hash `json:"hash"`
	// Raw is the signed transaction in the encoding that nodes accept, without
	// blobs.
	Raw []byte `json:"raw"`
	// Blobs are the blobs of this attempt; nil means the blobs of the request. The
	// two differ if the request was replaced after the attempt was signed.
	Blobs [][]byte `json:"blobs,omitempty"`
	// Proofs contains the commitments to the blobs, followed by their proofs, of 48
	// bytes each. They are deleted when the attempt cannot be sent any more.
	Proofs []byte `json:"proofs,omitempty"`
	// Nonce is the nonce of the transaction. It equals the nonce of the record
	// unless Void is set.
	Nonce uint64 `json:"nonce"`
	// Void means that this transaction can never be mined, because a finalized block has used
	// its nonce without a transaction. The request then gets another nonce.
	Void bool `json:"void,omitempty"`
	// Gas is the gas limit.
	Gas uint64 `json:"gas"`
	// Fees are the prices that the transaction offers.
	Fees Fees `json:"fees"`
	// Cost is the most that the transaction can cost, in wei: its value plus its
	// gas and blob gas at the offered prices.
	Cost uint256.Int `json:"cost"`
	// Noop means that the transaction does nothing except use the nonce. It was
	// signed to withdraw the request: if this attempt is mined, the request is
	// cancelled.
	Noop bool `json:"noop,omitempty"`
	// SentAt is when a node first accepted or rejected the transaction; zero if no
	// node has. A reorg that removes the transaction's block sets it back to zero.
	SentAt time.Time `json:"sentAt,omitzero"`
	// Result is the last certain answer of a node; Unknown if there was none.
	Result SendResult `json:"result,omitempty"`
	// Why is the node's message that came with Result.
	Why string `json:"why,omitempty"`
	// Refusals counts how often in a row nodes have rejected the transaction for
	// the same reason, if the reason lies in the transaction itself, for example
	// its price. The count stops at 6.
	Refusals int `json:"refusals,omitempty"`
}

// Record is a request together with everything that has happened to it.
type Record struct {
	Request
	// ID numbers the records of an account from 1, in the order in which the store
	// accepted the requests.
	ID uint64 `json:"id"`
	// State is how far the request has come.
	State State `json:"state"`
	// QueuedAt is when the store accepted the request.
	QueuedAt time.Time `json:"queuedAt"`
	// EndedAt is when the request ended; zero until then.
	EndedAt time.Time `json:"endedAt,omitzero"`
	// Nonce is the nonce of the request. It has no meaning in state Pending.
	Nonce uint64 `json:"nonce"`
	// Attempts are the transactions that were signed for the request, oldest first.
	// Only the last eight void ones are kept.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Height is the height of the block that contains one of the attempts; 0 if
	// there is none.
	Height uint64 `json:"height,omitempty"`
	// Block is the hash of the block at Height.
	Block common.Hash `json:"block,omitzero"`
	// Tx is the hash of the attempt that is in that block.
	Tx common.Hash `json:"tx,omitzero"`
	// Success means that the transaction in the block did not revert.
	Success bool `json:"success,omitempty"`
	// GasUsed is the gas that the transaction in the block used.
	GasUsed uint64 `json:"gasUsed,omitempty"`
	// GasPrice is the price per gas that the transaction paid, in wei; nil if the
	// node did not report it.
	GasPrice *uint256.Int `json:"gasPrice,omitempty"`
	// Contract is the contract that the transaction created; nil if it created
	// none.
	Contract *common.Address `json:"contract,omitempty"`
	// Logs are the logs that the transaction emitted. Only the first 64 KiB of them
	// are kept.
	Logs []Log `json:"logs,omitempty"`
	// Bumps is how often the request was signed again with the same nonce, at a
	// higher price or with another payload.
	Bumps int `json:"bumps,omitempty"`
	// BumpedAt is the time of the last bump.
	BumpedAt time.Time `json:"bumpedAt,omitzero"`
	// Capped means that the request waits because it needs a higher price than its
	// limits allow.
	Capped bool `json:"capped,omitempty"`
	// Cancelling means that the request is being withdrawn: its next attempt is a
	// no-op transaction with the same nonce.
	Cancelling bool `json:"cancelling,omitempty"`
	// Urgent means that the next attempt is signed at once instead of waiting until
	// the account has stalled, because the user has changed the request or nodes
	// refused the last attempt.
	Urgent bool `json:"urgent,omitempty"`
	// GoneAt is the chain's height at the first sign that something else has used
	// the nonce; 0 means that there was no sign. The sign is a finalized block that
	// shows the nonce as used, although no block contains any of the attempts. The
	// request is given up only when a later finalized block shows the same.
	GoneAt uint64 `json:"goneAt,omitempty"`
	// Unused is the height of a finalized block at which the nonce was not used
	// yet; 0 means unknown. Used and Unused limit the range of blocks in which the
	// transaction that used the nonce is searched.
	Unused uint64 `json:"unused,omitempty"`
	// Used is the height of the finalized block that first showed the nonce as used, although
	// none of the attempts was in a block. It is 0 if there was no such sign (GoneAt is 0).
	Used uint64 `json:"used,omitempty"`
	// NotBefore is the time until which the request waits, because its gas could
	// not be estimated, its cost was not covered, or it could not be signed; zero
	// means at once.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Reason tells users why the request failed or why it waits.
	Reason string `json:"reason,omitempty"`
}

// setReceipt copies the receipt of the transaction tx into the record.
func (r *Record) setReceipt(tx common.Hash, receipt Receipt) {
	// After a reorg, zero values remove the receipt of the lost block.
	r.Tx, r.Height, r.Block, r.Success = tx, receipt.Number, receipt.Block, receipt.Success
	r.GasUsed, r.GasPrice, r.Contract, r.Logs = receipt.GasUsed, receipt.GasPrice, receipt.Contract, nil
	size := 0
	for _, log := range receipt.Logs {
		if size += common.AddressLength + len(log.Topics)*common.HashLength + len(log.Data); size > maxLogs {
			break
		}
		r.Logs = append(r.Logs, log)
	}
}

// maxLogs limits the size of the logs that a record keeps, in bytes.
const maxLogs = 64 << 10

// Err returns nil if the request was executed or may still be executed. Otherwise
// the error wraps:
//
//   - ErrReverted if its transaction is in a block and failed there
//   - ErrNotExecuted if it failed without a transaction, was cancelled or superseded,
//     or if a block contains the no-op that withdraws it
//   - ErrNotReplaced if a block contains the transaction that was signed before the
//     last Client.Replace
//
// Until the block is final, a reorg can change the error.
func (r *Record) Err() error {
	a := r.mined()
	switch {
	case r.State.Terminal() && r.State != Final && (r.State != Failed || r.Tx == common.Hash{} || r.Success):
		return fmt.Errorf("%w: %q is %v: %s", ErrNotExecuted, r.Key, r.State, r.Reason)
	case a != nil && r.isWithdrawnBy(a):
		return fmt.Errorf("%w: %q: a no-op has its nonce", ErrNotExecuted, r.Key)
	case r.State >= Mined && r.State != Final && !r.Success:
		return fmt.Errorf("%w: transaction %v of %q", ErrReverted, r.Tx, r.Key)
	case a != nil && !r.isCarriedBy(a):
		return fmt.Errorf("%w: transaction %v of %q", ErrNotReplaced, r.Tx, r.Key)
	}
	return nil
}

// mined returns the attempt that is in a block, or nil.
func (r *Record) mined() *Attempt {
	if i := slices.IndexFunc(r.Attempts, func(a Attempt) bool { return a.Hash == r.Tx }); i >= 0 {
		return &r.Attempts[i]
	}
	return nil
}

// isWithdrawnBy reports whether the attempt is a no-op that replaces the request.
func (r *Record) isWithdrawnBy(a *Attempt) bool { return a.Noop && !r.Noop }

// isCarriedBy reports whether the attempt executes the present payload of the
// request.
func (r *Record) isCarriedBy(a *Attempt) bool {
	if r.Noop {
		return a.Noop
	}
	tx := new(types.Transaction)
	if tx.UnmarshalBinary(a.Raw) != nil {
		return true // a damaged record proves nothing
	}
	value := new(uint256.Int)
	if r.Value != nil {
		value = r.Value
	}
	// An attempt from before a Client.Replace has another payload.
	sameTo := tx.To() == nil && r.To == nil || tx.To() != nil && r.To != nil && *tx.To() == *r.To
	return sameTo && tx.Value().Cmp(value.ToBig()) == 0 && bytes.Equal(tx.Data(), r.Data) && a.Blobs == nil &&
		slices.Equal(tx.SetCodeAuthorizations(), r.Authorizations)
}

// Newest returns the last attempt, or nil.
func (r *Record) Newest() *Attempt {
	if len(r.Attempts) == 0 {
		return nil
	}
	return &r.Attempts[len(r.Attempts)-1]
}

// inFlight reports whether the request has a nonce but is in no block.
func (r *Record) inFlight() bool { return r.State == Prepared || r.State == Broadcast }

// Open reports whether the request has a nonce and may still change: from Prepared
// until it is Final, Failed, Superseded or Cancelled.
func (r *Record) Open() bool { return r.State > Pending && !r.State.Terminal() }

// isDelayed reports whether the request must wait until NotBefore.
func (r *Record) isDelayed(now time.Time) bool {
	// A time more than MaxRetry ahead can only come from a worker whose clock was
	// ahead.
	return now.Before(r.NotBefore) && r.NotBefore.Sub(now) <= MaxRetry
}

// madeByExecutor reports whether the executor made the request to fill a gap.
func (r *Record) madeByExecutor() bool {
	return len(r.Key) > len(ownKeys) && r.Key[:len(ownKeys)] == ownKeys
}

// clone returns a copy with its own slice of attempts.
func (r *Record) clone() Record {
	c := *r
	// A decision changes the attempts of the copy before the change is stored.
	c.Attempts = slices.Clone(r.Attempts)
	return c
}

// CheckRecord returns an error that wraps ErrMalformed for a record that no
// executor can have written. Stored bytes may be damaged, and the rules rely on the
// properties that are checked here.
func CheckRecord(r *Record) error {
	if r.State >= numStates || r.ID == 0 || r.Key == "" {
		return fmt.Errorf("%w: record %d with state %d and key %q", ErrMalformed, r.ID, r.State, r.Key)
	}
	if err := r.validateBlobs(); err != nil && !r.Noop && !r.State.Terminal() {
		return fmt.Errorf("%w: record %d: %w", ErrMalformed, r.ID, err)
	}
	if r.Open() && (len(r.Attempts) == 0 || r.Newest().Void) {
		return fmt.Errorf("%w: record %d is %v without a valid attempt", ErrMalformed, r.ID, r.State)
	}
	return nil
}

// voidAttempts marks all attempts as void, because something else has used their
// nonce.
func (r *Record) voidAttempts() {
	for k := range r.Attempts {
		r.Attempts[k].Void = true
		r.Attempts[k].dropBlobs()
	}
}

// sendable returns the index of the newest attempt that nodes have not rejected.
func sendable(r *Record) int {
	for k := len(r.Attempts) - 1; k >= 0; k-- {
		if r.Attempts[k].Result != Rejected && !r.Attempts[k].Void {
			return k
		}
	}
	// If nodes have rejected all attempts, send the newest.
	return len(r.Attempts) - 1
}
