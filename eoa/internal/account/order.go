package account

// OrderKind is the kind of an [Order].
type OrderKind uint8

const (
	// OrderCancel withdraws a request; see [Client.Cancel].
	OrderCancel OrderKind = iota + 1
	// OrderReplace gives a request another payload; see [Client.Replace].
	OrderReplace
	// OrderReset sets the next nonce; see [Client.ResetNonce].
	OrderReset
	// OrderResume resumes a stopped account; see [Client.Resume].
	OrderResume
)

// Order is a change that a user has ordered, for example a cancellation. Any
// process may give an order, because the store keeps it until the worker of the
// account carries it out.
type Order struct {
	// Seq numbers the orders of one account. The store sets it.
	Seq uint64 `json:"seq"`
	// Kind is the kind of the change.
	Kind OrderKind `json:"kind"`
	// Key is the key of the request to cancel or replace.
	Key string `json:"key,omitempty"`
	// Payload is the new payload for OrderReplace. Its Key is ignored.
	Payload *Request `json:"payload,omitempty"`
	// Force lets OrderReset give up the requests in flight.
	Force bool `json:"force,omitempty"`
}
