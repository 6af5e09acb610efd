package account

import "time"

// Head is the state of an account apart from its records. A store keeps it as one value and
// hands it back unchanged.
type Head struct {
	// Version counts the commits to the account. A worker names the version that it decided
	// on, and the store refuses the commit if the version has changed since.
	Version uint64 `json:"version"`
	// Started means that Next has been compared with the transaction count on the chain. It
	// is false for a new account, and after an operator has resumed a stopped one.
	Started bool `json:"started,omitempty"`
	// Next is the nonce that the next request gets. Each nonce from Floor up to it belongs to
	// a record, is in Gaps, or was used by a transaction of another program.
	Next uint64 `json:"next"`
	// Floor is the account's transaction count at a finalized block. All nonces below it are
	// used for good.
	Floor uint64 `json:"floor"`
	// Count is the highest transaction count that was seen at a newest block while something
	// was in flight. Neither a node that is behind nor a reorg lowers it.
	Count uint64 `json:"count,omitempty"`
	// Since is when Count last rose. The account has stalled if that is long ago.
	Since time.Time `json:"since,omitzero"`
	// Resent is when the accepted transactions were last sent again, because nodes forget. It
	// is stored because a worker of eoa/jobs may live for one step only.
	Resent time.Time `json:"resent,omitzero"`
	// InFlight is the number of records with a nonce and without a block.
	InFlight int `json:"inFlight,omitempty"`
	// Gaps are the nonces below Next that no known transaction has, ascending. They are
	// filled with transactions that do nothing, never with a request: an unknown transaction
	// may still use the nonce.
	Gaps []uint64 `json:"holes,omitempty"`
	// BelowSince is when the node began to report fewer transactions than Floor, which cannot
	// be right; zero if it does not.
	BelowSince time.Time `json:"belowSince,omitzero"`
	// AheadSince is when the node began to report more transactions than nonces were
	// assigned; zero if it does not.
	AheadSince time.Time `json:"aheadSince,omitzero"`
	// Stop has the reason if the account is stopped. Resumes counts how often an operator has
	// let it go on.
	Stop    Stop   `json:"stop,omitzero"`
	Resumes uint64 `json:"resumes,omitempty"`
	// Accepted is the value of Next when an operator last resumed the account or reset its
	// nonce. Nonces below it may be used by transactions that the store does not know, and
	// these are no reason to stop an exclusive account.
	Accepted uint64 `json:"accepted,omitempty"`
	// Marks name the last commit of each process that worked on the account, for the last 16
	// processes, oldest first. A process finds out by them whether its own commits are still
	// there.
	Marks []Mark `json:"marks,omitempty"`
	// Resets are the last five resets of Next by a user, oldest first.
	Resets []Reset `json:"resets,omitempty"`
}

// Reset is a change of the next nonce that a user has ordered with [Client.ResetNonce].
type Reset struct {
	// At is when the reset was carried out.
	At time.Time `json:"at"`
	// From is the next nonce before the reset.
	From uint64
	// To is the next nonce after the reset.
	To uint64
	// Forced means that requests in flight were given up.
	Forced bool `json:"forced,omitempty"`
}

// maxResets is the number of resets that [Head] keeps.
const maxResets = 5

// Mark names a commit in a way that no other commit can repeat. The version of an account is
// only a count: if a store loses commits, others can reach the same version again. The number
// in a mark is never used twice by its witness, so a store without it has lost the commit.
type Mark struct {
	// Witness is the random id of the [Witness] of the process.
	Witness uint64 `json:"w"`
	// Commit is the number that the witness gave to the commit. It only grows.
	Commit uint64 `json:"n"`
	// Version is the account's version after the commit.
	Version uint64 `json:"v"`
}
