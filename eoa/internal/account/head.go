package account

import "time"

// Head is the part of an account's state that does not belong to any single
// request. A store keeps it as one value and returns it unchanged.
type Head struct {
	// Version counts the commits to the account. A worker's batch has the version
	// on which its decision was based, and the store refuses the batch if another
	// commit has changed the version since.
	Version uint64 `json:"version"`
	// Started means that Next has been compared with the account's transaction
	// count on the chain. It is false for a new account, and for one that an
	// operator has just resumed.
	Started bool `json:"started,omitempty"`
	// Next is the nonce that the next request gets. Each nonce from Floor up to
	// Next either belongs to a record, is in Gaps, or was used by a transaction of
	// another program.
	Next uint64 `json:"next"`
	// Floor is the account's transaction count at a finalized block. All nonces
	// below it have been used, and no reorg can change that.
	Floor uint64 `json:"floor"`
	// Count is the highest transaction count of the account that a node has
	// reported while a request was in flight. Neither a reorg nor a node that is
	// behind lowers it.
	Count uint64 `json:"count,omitempty"`
	// Since is when Count last rose. If that was more than StallTimeout ago, the
	// account counts as stalled.
	Since time.Time `json:"since,omitzero"`
	// Resent is when the accepted transactions were last sent again, which is
	// needed because nodes forget transactions. It is stored because a worker of
	// eoa/jobs may exist for one step only.
	Resent time.Time `json:"resent,omitzero"`
	// InFlight is the number of records that have a nonce and are in no block.
	InFlight int `json:"inFlight,omitempty"`
	// Gaps contains the nonces below Next that no known transaction has, ascending.
	// They are filled with no-op transactions and never with a request, because an
	// unknown transaction may still use such a nonce.
	Gaps []uint64 `json:"holes,omitempty"`
	// BelowSince is when the node began to report fewer transactions than Floor, which
	// cannot be right; zero if the node reports enough. If this lasts, the account stops.
	// After a long time without any report, BelowSince is moved forward, because the node
	// may have reported enough in that time.
	//
	// BelowAt is when the node last reported too few.
	BelowSince time.Time `json:"belowSince,omitzero"`
	BelowAt    time.Time `json:"belowAt,omitzero"`
	// AheadSince is when the node began to report more transactions than nonces
	// were assigned; zero if it does not.
	AheadSince time.Time `json:"aheadSince,omitzero"`
	// Stop has the cause and the evidence if the account is stopped. Resumes counts
	// how often an operator has resumed the account.
	Stop    Stop   `json:"stop,omitzero"`
	Resumes uint64 `json:"resumes,omitempty"`
	// Accepted is the value of Next at the moment when an operator last resumed the account or
	// reset its nonce. An exclusive account stops if the chain has a transaction that the
	// store does not know. Below Accepted it does not stop for that reason, because the
	// operator has accepted such transactions.
	Accepted uint64 `json:"accepted,omitempty"`
	// Marks name the last commit of each process that has worked on the account,
	// for the last 16 processes, oldest first. A process checks with them whether
	// the store still has its own commits.
	Marks []Mark `json:"marks,omitempty"`
	// Resets are the last five resets of Next that users have ordered, oldest
	// first.
	Resets []Reset `json:"resets,omitempty"`
}

// Reset records a change of the next nonce that a user has ordered with
// [Client.ResetNonce].
type Reset struct {
	// At is when the reset was carried out.
	At time.Time `json:"at"`
	// From is the next nonce before the reset.
	From uint64
	// To is the next nonce after the reset.
	To uint64
	// Forced means that the reset gave up the requests in flight.
	Forced bool `json:"forced,omitempty"`
}

// maxResets is the number of resets that [Head] keeps.
const maxResets = 5

// Mark identifies a commit by its process and a number that this process never uses again.
// With its mark, a process can later check whether the store still has the commit. The
// version of the account is not enough for that: if a store loses commits, other commits
// can reach the same version.
type Mark struct {
	// Witness is the random id of the [Witness] of the process.
	Witness uint64 `json:"w"`
	// Commit is the number that the witness gave to the commit. Later commits have
	// higher numbers.
	Commit uint64 `json:"n"`
	// Version is the account's version after the commit.
	Version uint64 `json:"v"`
}
