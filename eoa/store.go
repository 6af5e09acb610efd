package eoa

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Lease is the right to write an account. Its epoch grows with each new holder and never repeats.
type Lease struct {
	Account Account
	Owner   string
	Epoch   uint64
	// Until is when another worker may take it.
	Until time.Time
}

// OrderKind is what a user wants done with an account's requests.
type OrderKind uint8

const (
	// OrderCancel withdraws a request. One that may be out already is replaced by a transaction that does nothing; what is mined counts.
	OrderCancel OrderKind = iota + 1
	// OrderReplace gives a request another payload at the same nonce; what is mined counts.
	OrderReplace
	// OrderReset sets the next nonce.
	OrderReset
)

// Order is carried out by the account's worker.
type Order struct {
	// Seq is the store's.
	Seq  uint64    `json:"seq"`
	Kind OrderKind `json:"kind"`
	// Key names the request of OrderCancel and OrderReplace; Payload is the new one of OrderReplace, whose Key does not matter.
	Key     string   `json:"key,omitempty"`
	Payload *Request `json:"payload,omitempty"`
	// Force lets OrderReset give up requests in flight.
	Force bool `json:"force,omitempty"`
}

// Inbox is what waits for an account's worker.
type Inbox struct {
	// Wake is the account's wake version: it grows by each Submit that accepts something and by each Order.
	Wake uint64
	// Orders wait, oldest first. Pending are the requests without a nonce, best first, as many as asked for, but no more than have MaxInboxBytes together, or
	// one. More: others may wait behind them.
	Orders  []Order
	Pending []Record
	More    bool
}

// MaxInboxBytes bounds what a worker reads of requests at once, about: all blobs that may wait, and more. What is behind so much that cannot be sent waits.
const MaxInboxBytes = 40 << 20

// Backlog is how much an account has to do: requests without a nonce, and with one but in no block.
type Backlog struct{ Pending, InFlight int }

// State of an account as its worker loads it.
type Loaded struct {
	Head Head
	// Open are the records for which [Record.Open] holds, by nonce.
	Open []Record
}

// Batch is one atomic step of an account: all of it or nothing.
type Batch struct {
	// Head is the new head. Its Version is the one that the step was decided on; the store writes that plus one.
	Head Head
	// Records replace those with the same ids, which were accepted before. A record's key and priority never change, its state changes as
	// [State.CanBecome] says, and an attempt is first committed with a zero SentAt.
	Records []Record
	// Events are appended to the outbox; the store numbers them.
	Events []Event
	// Done are the Seqs of orders that were carried out.
	Done []uint64
	// Add are requests of the executor's own, accepted as Submit does it. One whose key is there already is left out.
	Add []Request
}

// Store keeps accounts durably. All methods are safe for concurrent use by any number of processes. A method that returns without an error
// has written to what survives; one that returns an error may have written all or nothing, except where it names ErrFenced, ErrConflict,
// ErrWoken, ErrHeld, ErrKeyReused or ErrTooManyBlobs: then nothing. Package eoa/storetest checks all of this for any store.
//
// now is the caller's time; a store that many machines share may use a clock of its own instead.
type Store interface {
	// Submit accepts requests, all or none, and returns their records in the same order. A request whose key is there with an equal payload is
	// not accepted again: its record is returned as it stands. Another payload fails with ErrKeyReused, and new blobs above MaxPendingBlobs with
	// ErrTooManyBlobs.
	Submit(ctx context.Context, a Account, now time.Time, requests ...Request) ([]Record, error)
	// Order leaves an order for the account's worker.
	Order(ctx context.Context, a Account, now time.Time, o Order) error
	// Get returns the record with a key, or ErrUnknownRequest.
	Get(ctx context.Context, a Account, key string) (Record, error)
	// ByHash returns the record that one of its attempts has the hash of, or ErrUnknownRequest.
	ByHash(ctx context.Context, a Account, tx common.Hash) (Record, error)
	// List returns records with ids above after, ascending, at most limit.
	List(ctx context.Context, a Account, after uint64, limit int) ([]Record, error)

	// Backlog returns what an account has to do; pending requests are counted up to limit.
	Backlog(ctx context.Context, a Account, limit int) (Backlog, error)

	// Events returns events above after that were not acknowledged, ascending, at most limit; Acknowledge drops those up to a Seq.
	Events(ctx context.Context, a Account, after uint64, limit int) ([]Event, error)
	Acknowledge(ctx context.Context, a Account, through uint64) error

	// Acquire takes the account for ttl. It fails with ErrHeld while somebody else's lease, or another of the same owner's, has not ended.
	Acquire(ctx context.Context, a Account, owner string, now time.Time, ttl time.Duration) (Lease, error)
	// Renew extends a lease, or fails with ErrFenced. A lease that has ended can be renewed as long as nobody took it.
	Renew(ctx context.Context, l Lease, now time.Time, ttl time.Duration) (Lease, error)
	// Park ends a lease, and makes the account due at a time, zero for never. It fails with ErrWoken, and the lease goes on, if the wake
	// version is another one.
	Park(ctx context.Context, l Lease, wake uint64, due time.Time) error
	// Break ends whatever lease there is: its holder can write nothing from now on.
	Break(ctx context.Context, a Account) error
	// Due returns accounts that nobody holds and that have been woken, or whose time has come, at most limit.
	Due(ctx context.Context, now time.Time, limit int) ([]Account, error)

	// Load returns the account's head and open records. It fails with ErrFenced.
	Load(ctx context.Context, l Lease) (Loaded, error)
	// Inbox returns what waits: the pending requests of a rank above after.
	Inbox(ctx context.Context, a Account, after Rank, limit int) (Inbox, error)
	// Commit writes a step and returns the wake version. It fails with ErrFenced, or with ErrConflict if the account's version is not that of
	// the batch's head.
	Commit(ctx context.Context, l Lease, now time.Time, b Batch) (wake uint64, err error)
}
