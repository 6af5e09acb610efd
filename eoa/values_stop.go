// go test ./internal/tidy -update writes this file from eoa/internal/account/stop.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Cause is why an account is stopped.
type Cause = account.Cause

const (
	// CauseNone means that the account is not stopped.
	CauseNone = account.CauseNone
	// CauseRolledBack means that the store lost writes; see ErrStoreRolledBack.
	CauseRolledBack = account.CauseRolledBack
	// CauseOtherChain means that the node is on another chain; see
	// ErrOtherChain.
	CauseOtherChain = account.CauseOtherChain
)

// Stop is a halt of an account. It is stored, so that no worker goes on until
// an operator calls [Client.Resume].
//
//	type Stop struct {
//		// Cause is why the account stopped; CauseNone if it is not stopped.
//		Cause Cause `json:"cause,omitempty"`
//		// At is when it stopped.
//		At time.Time `json:"at,omitzero"`
//		// Reason describes the evidence.
//		Reason string `json:"reason,omitempty"`
//	}
//
//	// Err returns nil if the account is not stopped. Otherwise the error wraps
//	// ErrStopped, and ErrStoreRolledBack or ErrOtherChain.
//	func (s *Stop) Err() error
type Stop = account.Stop
