package eoa

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa/internal/account"
)

// Lease is the exclusive right of one worker to write to an account. Each new
// holder gets a higher epoch. The store compares epochs, so a worker that has lost
// its lease cannot write anything.
type Lease struct {
	// Account is the leased account.
	Account Account
	// Owner is the name of the holder, as passed to [Store.Acquire].
	Owner string
	// Epoch numbers the leases of one account, from 1; 0 means no lease.
	Epoch uint64
	// Until is when the lease expires, by the clock of the caller.
	Until time.Time
}

// Inbox is the work that waits for the worker of an account: orders, and requests
// without a nonce.
type Inbox struct {
	// Wake is the wake version of the account. It increases with each Order, and
	// with each Submit that accepts a request. If it is higher than the version
	// that a worker saw last, there is new work.
	Wake uint64
	// Head is the head of the account.
	Head account.Head
	// Orders contains the orders that have not been carried out yet, oldest first.
	Orders []Order
	// Pending contains the first requests without a nonce. Their number is at most
	// the limit of the call, and their size at most MaxInboxBytes, unless the first
	// one alone is larger.
	Pending []Record
	// More means that there may be more requests without a nonce.
	More bool
}

// MaxInboxBytes limits the total size of the requests in one [Inbox], in bytes, so
// that a worker does not read too much at once. It is the size of 64 blobs, which
// is more than a block has. Further requests are read after earlier ones have been
// sent. If all the earlier ones must wait, for example because of their price
// limits, a request of higher [Request.Priority] still goes before them.
const MaxInboxBytes = 8 << 20

// Backlog tells how much work an account has. [Fleet.Pick] uses it to compare
// accounts.
type Backlog struct {
	// Pending is how many requests have no nonce yet.
	Pending int
	// InFlight is how many requests have a nonce but are in no block.
	InFlight int
}

// Store keeps accounts durably: their records, orders, events and leases. Any
// number of processes may call the methods at the same time. A method that returns
// nil has made its writes durable. If it returns ErrFenced, ErrConflict, ErrWoken,
// ErrHeld or ErrKeyReused, nothing was written. After any other error, either
// everything or nothing was written.
//
// The easiest way to implement a Store is package eoa/kvstore, which turns any
// ordered key-value store into one. Package eoa/storetest tests a Store against the
// whole contract.
//
// Several methods get the caller's time in a parameter called now. A store that
// several machines share may use its own clock for leases instead. Lease.Until is
// always by the caller's clock, because the caller compares it with that clock to
// decide when to renew the lease.
type Store interface {
	// Submit accepts requests, all or none, and returns their records in the same
	// order. If a key already exists and its request has an equal payload, Submit
	// returns the existing record. If the payload differs, Submit returns
	// ErrKeyReused.
	Submit(ctx context.Context, a Account, now time.Time, requests ...Request) ([]Record, error)
	// Order stores a user's order. The order stays in the inbox until the worker
	// commits a Batch whose Done contains the order's Seq.
	Order(ctx context.Context, a Account, now time.Time, o Order) error
	// Get returns the record with the given key. It returns ErrUnknownRequest
	// if there is none.
	Get(ctx context.Context, a Account, key string) (Record, error)
	// ByHash returns the record that has an attempt with the given hash. It
	// returns ErrUnknownRequest if there is none.
	ByHash(ctx context.Context, a Account, tx common.Hash) (Record, error)
	// List returns up to limit records with ids above after, in the order of their
	// ids.
	List(ctx context.Context, a Account, after uint64, limit int) ([]Record, error)

	// Backlog returns how much work an account has. It counts at most limit
	// requests without a nonce.
	Backlog(ctx context.Context, a Account, limit int) (Backlog, error)

	// Events returns up to limit unacknowledged events with a Seq above after, in
	// order.
	Events(ctx context.Context, a Account, after uint64, limit int) ([]Event, error)
	// Acknowledge deletes the events whose Seq is at most through.
	Acknowledge(ctx context.Context, a Account, through uint64) error
	// Undelivered returns up to limit accounts that have unacknowledged events, in
	// ascending order of chain id and address. The list begins with the first
	// account above after. Hosts call Undelivered often, so accounts without events
	// must not slow it down.
	Undelivered(ctx context.Context, after Account, limit int) ([]Account, error)

	// Acquire gives the lease of an account to owner for the time ttl. It returns
	// ErrHeld while any other lease has not expired, even a lease of the same
	// owner.
	Acquire(ctx context.Context, a Account, owner string, now time.Time, ttl time.Duration) (Lease, error)
	// Renew extends a lease. It returns ErrFenced if the lease was parked or
	// broken, or if another worker has acquired the account. Until that happens,
	// even an expired lease can be renewed.
	Renew(ctx context.Context, l Lease, now time.Time, ttl time.Duration) (Lease, error)
	// Park gives a lease back. Due lists the account again from the given time on;
	// zero means never. If the account's wake version is no longer wake, new work
	// has arrived: Park then returns ErrWoken, and the worker keeps the lease.
	Park(ctx context.Context, l Lease, wake uint64, due time.Time) error
	// Break takes the lease from its holder, if there is one, so that the holder
	// can no longer write.
	Break(ctx context.Context, a Account) error
	// Due returns up to limit accounts that no worker holds and that need one,
	// because they have new requests or orders, or because their due time has
	// passed.
	Due(ctx context.Context, now time.Time, limit int) ([]Account, error)

	// Load returns the stored state of an account, for a worker that has acquired its lease:
	// the head, and the records that have a nonce and may still change. It returns ErrFenced
	// if the worker no longer has the lease.
	Load(ctx context.Context, l Lease) (Loaded, error)
	// Inbox returns the orders that have not been carried out, and up to limit
	// requests without a nonce. Requests with a higher [Request.Priority] come
	// first, and those of equal priority in the order of their ids.
	Inbox(ctx context.Context, a Account, limit int) (Inbox, error)
	// Commit writes a batch and returns the account's wake version. It returns
	// ErrFenced if the lease is lost. It returns ErrConflict if the stored version
	// differs from the version in b.Head, because the batch was then decided on an
	// outdated state.
	Commit(ctx context.Context, l Lease, now time.Time, b Batch) (wake uint64, err error)
}
