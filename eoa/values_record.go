// go test ./internal/tidy -update writes this file from eoa/internal/account/record.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Attempt is one signed transaction of a request. A record keeps every attempt
// that a node may have, because any of them may be mined.
//
//	type Attempt struct {
//		// Hash is the transaction hash.
//		Hash common.Hash `json:"hash"`
//		// Raw is the encoded transaction, without blobs.
//		Raw []byte `json:"raw"`
//		// Blobs are the attempt's blobs, if they differ from the request's.
//		Blobs [][]byte `json:"blobs,omitempty"`
//		// Proofs are the commitments to the blobs, followed by their proofs, of 48
//		// bytes each. They are dropped once the attempt cannot be sent again.
//		Proofs []byte `json:"proofs,omitempty"`
//		// Nonce is the transaction's nonce. It is the record's, unless Void is set.
//		Nonce uint64 `json:"nonce"`
//		// Void means that the transaction can provably never be mined, because
//		// something else has used its nonce. The request has lost the nonce.
//		Void bool `json:"void,omitempty"`
//		// Gas is the gas limit.
//		Gas uint64 `json:"gas"`
//		// Fees are the offered prices.
//		Fees Fees `json:"fees"`
//		// Cost is the most that the transaction can cost, value included, in wei.
//		Cost uint256.Int `json:"cost"`
//		// Noop means that the transaction does nothing. If it is mined, the request
//		// is cancelled.
//		Noop bool `json:"noop,omitempty"`
//		// SentAt is when a node first gave a definite answer; zero if none has, or
//		// none since the last reorg.
//		SentAt time.Time `json:"sentAt,omitzero"`
//		// Result is the last definite answer to a send; Unknown if there was none.
//		Result SendResult `json:"result,omitempty"`
//		// Why is the node's message.
//		Why string `json:"why,omitempty"`
//		// Refusals counts the last rejections in a row for the reason in Why, if it
//		// is about the transaction itself; at most 6.
//		Refusals int `json:"refusals,omitempty"`
//	}
type Attempt = account.Attempt

// Record is a request with its history.
//
//	type Record struct {
//		Request
//		// ID is assigned by the store, from 1, in order of acceptance.
//		ID uint64 `json:"id"`
//		// State is the state of the request.
//		State State `json:"state"`
//		// QueuedAt is when the store accepted the request.
//		QueuedAt time.Time `json:"queuedAt"`
//		// EndedAt is when the request ended; zero before.
//		EndedAt time.Time `json:"endedAt,omitzero"`
//		// Nonce is the request's nonce. It is valid from Prepared on.
//		Nonce uint64 `json:"nonce"`
//		// Attempts are the signed transactions, oldest first. Of the void ones only
//		// the last eight are kept.
//		Attempts []Attempt `json:"attempts,omitempty"`
//		// Height is the height of the block of Mined and later states.
//		Height uint64 `json:"height,omitempty"`
//		// Block is the hash of that block.
//		Block common.Hash `json:"block,omitzero"`
//		// Tx is the hash of the attempt that is in that block.
//		Tx common.Hash `json:"tx,omitzero"`
//		// Success is from the receipt: the transaction did not revert.
//		Success bool `json:"success,omitempty"`
//		// GasUsed is from the receipt.
//		GasUsed uint64 `json:"gasUsed,omitempty"`
//		// GasPrice is the price per gas that the transaction paid, in wei, from the
//		// receipt; nil if the node did not give it.
//		GasPrice *uint256.Int `json:"gasPrice,omitempty"`
//		// Contract is the created contract, from the receipt; nil for none.
//		Contract *common.Address `json:"contract,omitempty"`
//		// Logs are the logs of the receipt, without those beyond the first 64 KiB.
//		Logs []Log `json:"logs,omitempty"`
//		// Bumps is the number of replacements that were signed.
//		Bumps int `json:"bumps,omitempty"`
//		// BumpedAt is when the last replacement was signed.
//		BumpedAt time.Time `json:"bumpedAt,omitzero"`
//		// Capped means that the next replacement would exceed a price limit.
//		Capped bool `json:"capped,omitempty"`
//		// Cancelling means that the next attempt is a noop.
//		Cancelling bool `json:"cancelling,omitempty"`
//		// Urgent means that the next attempt is due at once, because the user
//		// changed the request or nodes refused it.
//		Urgent bool `json:"urgent,omitempty"`
//		// GoneAt is the head at which the finalized block first had used the nonce
//		// while no attempt was in any block; 0 means never.
//		GoneAt uint64 `json:"goneAt,omitempty"`
//		// Unused is a finalized height at which the nonce was not used. It is known
//		// from Prepared on; 0 means unknown.
//		Unused uint64 `json:"unused,omitempty"`
//		// Used is a finalized height at which the nonce was used; 0 if GoneAt is.
//		Used uint64 `json:"used,omitempty"`
//		// NotBefore is when the request may next be signed, after a refusal or a
//		// failure to estimate, pay or sign; zero means at once.
//		NotBefore time.Time `json:"notBefore,omitzero"`
//		// Reason explains why the request failed or waits.
//		Reason string `json:"reason,omitempty"`
//	}
//
//	// Err returns nil if the request was executed, or may still be. It wraps
//	// ErrReverted if the transaction that is in a block reverted, and ErrNotExecuted
//	// if the request failed without one, or was cancelled or superseded.
//	func (r *Record) Err() error
//
//	// Newest returns the last attempt, or nil.
//	func (r *Record) Newest() *Attempt
//
//	// Open reports whether the request has a nonce and may still change.
//	func (r *Record) Open() bool
type Record = account.Record
