package eoa

import (
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// Attempt is one signed transaction of a request. All that may be out are kept: any of them may be the one that is mined.
type Attempt struct {
	// Hash is the transaction's, Raw its bytes, without blobs.
	Hash common.Hash `json:"hash"`
	Raw  []byte      `json:"raw"`
	// Blobs are those it is sent with, where they are not the request's.
	Blobs [][]byte `json:"blobs,omitempty"`
	// Proofs are what proves the blobs, as far as they may be sent again: a commitment to each, and then the proofs, of 48 bytes each.
	Proofs []byte `json:"proofs,omitempty"`
	// Nonce is the transaction's: the record's, except where Void.
	Nonce uint64 `json:"nonce"`
	// Void: it was provably never out, and its nonce was taken from the request.
	Void bool `json:"void,omitempty"`
	// Gas is its limit, Fees are its prices, Cost is the most that it can cost, value included, in wei.
	Gas  uint64      `json:"gas"`
	Fees Fees        `json:"fees"`
	Cost uint256.Int `json:"cost"`
	// Noop: it does nothing, and cancels the request if it is the one that is mined.
	Noop bool `json:"noop,omitempty"`
	// Result is what giving it to a node came to, as far as nodes were certain, and Why in words. SentAt is when one first was, zero for never, or not since a reorg.
	SentAt time.Time  `json:"sentAt,omitzero"`
	Result SendResult `json:"result,omitempty"`
	Why    string     `json:"why,omitempty"`
}

// Record is a request with what became of it.
type Record struct {
	Request
	// ID is the store's, in the order of acceptance, from 1.
	ID uint64 `json:"id"`
	// State is where it stands; QueuedAt when it was accepted.
	State    State     `json:"state"`
	QueuedAt time.Time `json:"queuedAt"`
	// Nonce is bound from Prepared on.
	Nonce uint64 `json:"nonce"`
	// Attempts are all signed transactions, oldest first; of those that are Void, the last few.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Height, Block and Tx are the block of Mined and later states and the attempt that is in it; Success and GasUsed are from its receipt.
	Height  uint64      `json:"height,omitempty"`
	Block   common.Hash `json:"block,omitzero"`
	Tx      common.Hash `json:"tx,omitzero"`
	Success bool        `json:"success,omitempty"`
	GasUsed uint64      `json:"gasUsed,omitempty"`
	// Bumps counts replacements at a higher price, BumpedAt is when the last was signed. Capped: the next one would pass a limit.
	Bumps    int       `json:"bumps,omitempty"`
	BumpedAt time.Time `json:"bumpedAt,omitzero"`
	Capped   bool      `json:"capped,omitempty"`
	// Cancelling: the next attempt does nothing. Hurry: the next attempt is due at once, because the user changed the request.
	Cancelling bool `json:"cancelling,omitempty"`
	Hurry      bool `json:"hurry,omitempty"`
	// GoneAt is the head at which the nonce was first seen taken for good by a transaction that is none of the attempts; 0 for never.
	GoneAt uint64 `json:"goneAt,omitempty"`
	// NotBefore is until when the request waits for its next signature, after a refusal or where it could not be estimated, paid for or signed.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Reason says in words why the request failed or waits.
	Reason string `json:"reason,omitempty"`
}

// Newest returns the last attempt, or nil.
func (r *Record) Newest() *Attempt {
	if len(r.Attempts) == 0 {
		return nil
	}
	return &r.Attempts[len(r.Attempts)-1]
}

// live counts the attempts that are not void.
func (r *Record) live() (n int) {
	for k := range r.Attempts {
		if !r.Attempts[k].Void {
			n++
		}
	}
	return n
}

// InFlight reports whether the request has a nonce and is in no block.
func (r *Record) InFlight() bool { return r.State == Prepared || r.State == Broadcast }

// Open reports whether the request has a nonce and may still change.
func (r *Record) Open() bool { return r.State > Pending && !r.State.Terminal() }

// waits reports whether it is too early for the request's next signature. No wait is that long where the clock of whoever wrote it was ahead.
func (r *Record) waits(now time.Time) bool {
	return now.Before(r.NotBefore) && r.NotBefore.Sub(now) <= maxRetry
}

// own reports whether the executor made the request.
func (r *Record) own() bool { return len(r.Key) > len(ownKeys) && r.Key[:len(ownKeys)] == ownKeys }

// clone copies what decisions change.
func (r *Record) clone() Record {
	c := *r
	c.Attempts = slices.Clone(r.Attempts)
	return c
}

// check reports what no store was ever given. The error wraps ErrMalformed.
func (r *Record) check() error {
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

// Head is what an account's executor keeps besides records.
type Head struct {
	// Version counts the commits to the account. A commit names the version that it was decided on.
	Version uint64 `json:"version"`
	// Started: Next was read from the chain once.
	Started bool `json:"started,omitempty"`
	// Next is the next new nonce. Every nonce from Floor to Next belongs to a record, is in Recycled or Holes, or was used by somebody else.
	Next uint64 `json:"next"`
	// Floor: every nonce below it is used in a finalized block.
	Floor uint64 `json:"floor"`
	// Count is the most transactions that the account was seen to have on the chain while something was in flight, Since when that was first so: for that long
	// nothing has moved, whoever looked. A node that is behind, or a reorganization, moves nothing.
	Count uint64    `json:"count,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Resent is when what a node had accepted, as far as it was due, was last given to one again: a worker that lives for one step need not do it as well.
	Resent time.Time `json:"resent,omitzero"`
	// InFlight is how many records are in flight.
	InFlight int `json:"inFlight,omitempty"`
	// Recycled are nonces below Next whose transactions were provably never out, ascending.
	Recycled []uint64 `json:"recycled,omitempty"`
	// Holes are nonces below Next of which nobody knows a transaction, ascending. Only a noop may fill them: somebody else's may yet come.
	Holes []uint64 `json:"holes,omitempty"`
	// Resets are the last resets of Next by order, oldest first, at most MaxResets.
	Resets []Reset `json:"resets,omitempty"`
}

// MaxResets is how many resets are remembered.
const MaxResets = 5

// Reset is a change of the next nonce that a person ordered.
type Reset struct {
	At       time.Time `json:"at"`
	From, To uint64
	Forced   bool `json:"forced,omitempty"`
}
