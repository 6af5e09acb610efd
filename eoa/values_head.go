// go test ./internal/tidy -update writes this file from eoa/internal/account/head.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Head is the state of an account without its records.
//
//	type Head struct {
//		// Version is the number of commits to the account. Each commit names the
//		// version that it was decided on.
//		Version uint64 `json:"version"`
//		// Started means that Next was initialized from the chain, or moved behind
//		// the chain's count after a stop.
//		Started bool `json:"started,omitempty"`
//		// Next is the next new nonce. Every nonce from Floor to Next belongs to a
//		// record, is in Holes, or was used by a transaction from outside.
//		Next uint64 `json:"next"`
//		// Floor is the account's transaction count at the finalized block: every
//		// nonce below it is used.
//		Floor uint64 `json:"floor"`
//		// Count is the highest transaction count seen at the latest block while
//		// something was in flight. A node that is behind or a reorg does not lower
//		// it.
//		Count uint64 `json:"count,omitempty"`
//		// Since is when Count was first seen; nothing has moved since then.
//		Since time.Time `json:"since,omitzero"`
//		// Resent is when all accepted transactions that were due had last been sent
//		// again. It is stored because a worker may live for one step only.
//		Resent time.Time `json:"resent,omitzero"`
//		// InFlight is the number of records in flight.
//		InFlight int `json:"inFlight,omitempty"`
//		// Holes are the nonces below Next without a known transaction, ascending.
//		// Only a noop may fill them, because an unknown transaction may still
//		// appear.
//		Holes []uint64 `json:"holes,omitempty"`
//		// BelowSince is when the node began to report fewer transactions than
//		// Floor; zero if it does not.
//		BelowSince time.Time `json:"belowSince,omitzero"`
//		// AheadSince is when the node began to report more transactions than Next;
//		// zero if it does not.
//		AheadSince time.Time `json:"aheadSince,omitzero"`
//		// Stop is set if the account is stopped. Resumes counts how often it went on
//		// after a stop.
//		Stop    Stop   `json:"stop,omitzero"`
//		Resumes uint64 `json:"resumes,omitempty"`
//		// Accepted is the highest next nonce when the account went on after a stop,
//		// or was reset. Transactions that the store does not know may use the nonces
//		// below it, so they do not stop an exclusive account.
//		Accepted uint64 `json:"accepted,omitempty"`
//		// Marks name the last commits of the processes that worked on the account
//		// last, at most 16, oldest first.
//		Marks []Mark `json:"marks,omitempty"`
//		// Resets are the last MaxResets resets of Next by order, oldest first.
//		Resets []Reset `json:"resets,omitempty"`
//	}
type Head = account.Head

// Reset is a change of the next nonce that a user ordered.
//
//	type Reset struct {
//		// At is when the reset was carried out.
//		At time.Time `json:"at"`
//		// From is the next nonce before the reset.
//		From uint64
//		// To is the next nonce after the reset.
//		To uint64
//		// Forced means that requests in flight were given up.
//		Forced bool `json:"forced,omitempty"`
//	}
type Reset = account.Reset

// Mark names the last commit to an account that the executors of one [Witness]
// made. A version is a count, so commits of other workers can replace lost ones.
// A mark cannot be replaced, because a witness never uses a number again.
//
//	type Mark struct {
//		// Witness is the random id of the witness.
//		Witness uint64 `json:"w"`
//		// Commit is the witness's number of the commit. It only grows.
//		Commit uint64 `json:"n"`
//		// Version is the account's version after the commit.
//		Version uint64 `json:"v"`
//	}
type Mark = account.Mark
