// go test ./internal/tidy -update writes this file from eoa/internal/account/retain.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Retention limits the history of an account in its store. The executor applies
// it when the account has no work left, and every ten minutes while it has.
//
// Of a dropped request, the store keeps the key, the id, the state and a digest
// of the payload: submitting it again still finds the same request and executes
// nothing, and [Client.Get] returns a record without the rest. Its hashes and
// its place in [Client.List] are gone.
//
//	type Retention struct {
//		// Age is how long the record of a finished request is kept; at least 0. 0
//		// means without a limit. The default is 7 days.
//		Age time.Duration
//		// Count is the number of the newest requests whose records are kept even if
//		// all others are dropped before Age; at least 0. 0 means without a limit. The
//		// default is 100,000.
//		Count int
//		// EventAge is how long an unacknowledged event is kept; at least 0.
//		// 0 means without a limit. The default is 30 days.
//		EventAge time.Duration
//	}
//
//	// Validate returns an error that lists each field out of range. The error wraps
//	// ErrInvalidConfig.
//	func (r *Retention) Validate() error
type Retention = account.Retention
