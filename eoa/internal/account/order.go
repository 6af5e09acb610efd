package account

// OrderKind is the kind of change that a user orders.
type OrderKind uint8

const (
	// OrderCancel withdraws a request; see [Client.Cancel].
	OrderCancel OrderKind = iota + 1
	// OrderReplace gives a request another payload; see [Client.Replace].
	OrderReplace
	// OrderReset sets the next nonce; see [Client.ResetNonce].
	OrderReset
	// OrderResume lets a stopped account go on; see [Client.Resume].
	OrderResume
)

// Order is a change that a user has ordered, for example a cancellation. It is stored until
// the worker of the account carries it out, so that any process may give it.
type Order struct {
	// Seq is the number of the order among those of its account. The store sets it.
	Seq uint64 `json:"seq"`
	// Kind is the kind of the change.
	Kind OrderKind `json:"kind"`
	// Key is the key of the request that is cancelled or replaced.
	Key string `json:"key,omitempty"`
	// Payload is the new payload of a request that is replaced. Its Key is ignored.
	Payload *Request `json:"payload,omitempty"`
	// Force lets a reset give up the requests in flight.
	Force bool `json:"force,omitempty"`
}
