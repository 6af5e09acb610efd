// go test ./internal/tidy -update writes this file from eoa/internal/account/order.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// OrderKind is the kind of change that a user orders.
type OrderKind = account.OrderKind

const (
	// OrderCancel withdraws a request. If its transaction may already be on a
	// node, a noop with the same nonce replaces it, and the one that is mined
	// decides.
	OrderCancel = account.OrderCancel
	// OrderReplace gives a request another payload with the same nonce. The
	// transaction that is mined decides.
	OrderReplace = account.OrderReplace
	// OrderReset sets the next nonce.
	OrderReset = account.OrderReset
	// OrderResume lets a stopped account go on.
	OrderResume = account.OrderResume
)

// Order is a user's order to an account. The account's worker carries it out.
//
//	type Order struct {
//		// Seq is the order's number, assigned by the store.
//		Seq uint64 `json:"seq"`
//		// Kind is the kind of order.
//		Kind OrderKind `json:"kind"`
//		// Key is the key of the request, for OrderCancel and OrderReplace.
//		Key string `json:"key,omitempty"`
//		// Payload is the new payload, for OrderReplace. Its Key is ignored.
//		Payload *Request `json:"payload,omitempty"`
//		// Force lets OrderReset give up requests in flight.
//		Force bool `json:"force,omitempty"`
//	}
type Order = account.Order
