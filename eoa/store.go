package eoa

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Lease is the exclusive right to write an account. Each new holder gets a
// higher epoch, and an epoch never repeats.
type Lease struct {
	// Account is the leased account.
	Account Account
	// Owner is the holder's name, as passed to [Store.Acquire].
	Owner string
	// Epoch is the lease's number, from 1; 0 means no lease.
	Epoch uint64
	// Until is when another worker may acquire the account, by the caller's clock.
	Until time.Time
}

// Inbox is the work that waits for an account's worker.
type Inbox struct {
	// Wake is the account's wake version. It increases with each Order and with
	// each Submit that accepts a request.
	Wake uint64
	// Head is the account's head.
	Head Head
	// Orders are the open orders, oldest first.
	Orders []Order
	// Pending are requests without a nonce, in order of rank. There are at most
	// limit of them, and at most MaxInboxBytes unless the first alone is
	// larger.
	Pending []Record
	// More reports that there may be further pending requests.
	More bool
}

// MaxInboxBytes is the approximate maximum size of the pending requests that an
// [Inbox] returns. It is the size of 64 blobs, which are more than a worker can
// send in a block. Requests beyond it wait until those before them are sent.
const MaxInboxBytes = 8 << 20

// Backlog is the amount of work that an account has.
type Backlog struct {
	// Pending is the number of requests without a nonce.
	Pending int
	// InFlight is the number of requests with a nonce that are in no block.
	InFlight int
}

// Store persists accounts. All methods are safe for concurrent use by any
// number of processes. A method that returns nil has made its writes durable.
// After ErrFenced, ErrConflict, ErrWoken, ErrHeld, ErrKeyReused or
// ErrTooManyBlobs nothing was written. After any other error either everything
// or nothing was written. Package eoa/storetest tests a Store for all of this.
//
// The parameter now is the caller's time. A store that several machines share
// may use its own clock for leases instead. The Until of a lease that it returns is the
// caller's time in any case, because the caller renews the lease by it.
type Store interface {
	// Submit accepts requests, all or none, and returns their records in the
	// same order. If a key exists with an equal payload, Submit returns the
	// existing record. It returns ErrKeyReused if the payload differs, and
	// ErrTooManyBlobs if more than MaxPendingBlobs blobs would wait.
	Submit(ctx context.Context, a Account, now time.Time, requests ...Request) ([]Record, error)
	// Order stores an order for the account's worker.
	Order(ctx context.Context, a Account, now time.Time, o Order) error
	// Get returns the record with the given key. It returns ErrUnknownRequest
	// if there is none.
	Get(ctx context.Context, a Account, key string) (Record, error)
	// ByHash returns the record that has an attempt with the given hash. It
	// returns ErrUnknownRequest if there is none.
	ByHash(ctx context.Context, a Account, tx common.Hash) (Record, error)
	// List returns the records with ids above after, ascending, at most limit.
	List(ctx context.Context, a Account, after uint64, limit int) ([]Record, error)

	// Backlog returns the amount of work that an account has. It counts at most
	// limit pending requests.
	Backlog(ctx context.Context, a Account, limit int) (Backlog, error)

	// Events returns the unacknowledged events above after, ascending, at most
	// limit.
	Events(ctx context.Context, a Account, after uint64, limit int) ([]Event, error)
	// Acknowledge drops the events up to and including the Seq through.
	Acknowledge(ctx context.Context, a Account, through uint64) error
	// Undelivered returns the accounts above after that have unacknowledged
	// events, ascending by chain id and address, at most limit. Accounts without
	// such events cost nothing.
	Undelivered(ctx context.Context, after Account, limit int) ([]Account, error)

	// Acquire leases the account to owner for ttl. It returns ErrHeld while any
	// other lease is in force, including one of the same owner.
	Acquire(ctx context.Context, a Account, owner string, now time.Time, ttl time.Duration) (Lease, error)
	// Renew extends a lease. It returns ErrFenced if the lease was parked or
	// broken, or if another worker has acquired the account. Until then an
	// expired lease can be renewed.
	Renew(ctx context.Context, l Lease, now time.Time, ttl time.Duration) (Lease, error)
	// Park ends a lease and makes the account due at the given time; zero means
	// never. It returns ErrWoken, and the lease stays in force, if the wake
	// version is no longer wake.
	Park(ctx context.Context, l Lease, wake uint64, due time.Time) error
	// Break ends the current lease, if any. Its holder can no longer write.
	Break(ctx context.Context, a Account) error
	// Due returns accounts without a lease that have new requests or orders, or
	// whose due time has passed, at most limit.
	Due(ctx context.Context, now time.Time, limit int) ([]Account, error)

	// Load returns the account's head and open records. It returns ErrFenced if
	// the lease is lost.
	Load(ctx context.Context, l Lease) (Loaded, error)
	// Inbox returns the open orders and the pending requests with a rank above
	// after, at most limit.
	Inbox(ctx context.Context, a Account, after Rank, limit int) (Inbox, error)
	// Commit writes a step and returns the wake version. It returns ErrFenced
	// if the lease is lost, and ErrConflict if the stored version is not that
	// of b.Head.
	Commit(ctx context.Context, l Lease, now time.Time, b Batch) (wake uint64, err error)
}
