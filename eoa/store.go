package eoa

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa/internal/account"
)

// Lease is the exclusive right of one worker to write an account. Each new holder gets a
// higher epoch. A worker that has lost its lease can write nothing, because the store
// compares the epochs.
type Lease struct {
	// Account is the leased account.
	Account Account
	// Owner is the name of the holder, as passed to [Store.Acquire].
	Owner string
	// Epoch is the number of the lease among those of its account, from 1; 0 means no lease.
	Epoch uint64
	// Until is when the lease expires, by the clock of the caller.
	Until time.Time
}

// Inbox is the work that waits for the worker of an account.
type Inbox struct {
	// Wake is the wake version of the account. It increases with each Order, and with each
	// Submit that accepts a request. A worker sees by it that there is new work.
	Wake uint64
	// Head is the head of the account.
	Head account.Head
	// Orders are the orders that were not carried out yet, oldest first.
	Orders []Order
	// Pending are the first requests without a nonce. There are at most limit of them, and
	// their size is at most MaxInboxBytes, unless the first one alone is larger.
	Pending []Record
	// More means that there may be more requests without a nonce.
	More bool
}

// MaxInboxBytes is the greatest size of the requests that an [Inbox] has, in bytes, so that a
// worker does not read too much at once. It is the size of 64 blobs, more than a block has.
// The other requests wait until those before them are sent.
const MaxInboxBytes = 8 << 20

// Backlog is how much work an account has. [Fleet.Pick] compares accounts by it.
type Backlog struct {
	// Pending is how many requests have no nonce yet.
	Pending int
	// InFlight is how many requests have a nonce and are in no block.
	InFlight int
}

// Store keeps accounts durably: their records, orders, events and leases. Any number of
// processes may use the methods at the same time. A method that returns nil has made its
// writes durable. If it returns ErrFenced, ErrConflict, ErrWoken, ErrHeld or ErrKeyReused,
// nothing was written. After any other error, either everything was written or nothing.
//
// The easiest way to a Store is package eoa/kvstore, which makes one of any ordered key-value
// store. Package eoa/storetest tests a Store for the whole contract.
//
// The parameter now is the caller's time. A store that several machines share may use its own
// clock for leases instead. Lease.Until is the caller's time in any case, because the caller
// renews the lease by it.
type Store interface {
	// Submit accepts requests, all or none, and returns their records in the same order. If a
	// key exists already and its request has an equal payload, Submit returns the existing
	// record. If the payload differs, it returns ErrKeyReused.
	Submit(ctx context.Context, a Account, now time.Time, requests ...Request) ([]Record, error)
	// Order keeps an order until a Batch with its Seq in Done is committed.
	Order(ctx context.Context, a Account, now time.Time, o Order) error
	// Get returns the record with the given key. It returns ErrUnknownRequest
	// if there is none.
	Get(ctx context.Context, a Account, key string) (Record, error)
	// ByHash returns the record that has an attempt with the given hash. It
	// returns ErrUnknownRequest if there is none.
	ByHash(ctx context.Context, a Account, tx common.Hash) (Record, error)
	// List returns the records with ids above after, in order of their ids, at most limit.
	List(ctx context.Context, a Account, after uint64, limit int) ([]Record, error)

	// Backlog returns how much work an account has. It counts at most limit requests without
	// a nonce.
	Backlog(ctx context.Context, a Account, limit int) (Backlog, error)

	// Events returns the events with a Seq above after that were not acknowledged, in order,
	// at most limit.
	Events(ctx context.Context, a Account, after uint64, limit int) ([]Event, error)
	// Acknowledge deletes the events up to and including the one with the Seq through.
	Acknowledge(ctx context.Context, a Account, through uint64) error
	// Undelivered returns the accounts above after that have events which were not
	// acknowledged, ascending by chain id and address, at most limit. Other accounts must not
	// slow it down, because hosts call it often.
	Undelivered(ctx context.Context, after Account, limit int) ([]Account, error)

	// Acquire gives the lease of an account to owner, for the time ttl. It returns ErrHeld
	// while any other lease has not expired, even one of the same owner.
	Acquire(ctx context.Context, a Account, owner string, now time.Time, ttl time.Duration) (Lease, error)
	// Renew extends a lease. It returns ErrFenced if the lease was parked or broken, or if
	// another worker has acquired the account. A lease that has expired can be renewed until
	// then.
	Renew(ctx context.Context, l Lease, now time.Time, ttl time.Duration) (Lease, error)
	// Park gives a lease back, and makes the account due at the given time; zero means never.
	// If the wake version is no longer wake, there is new work: Park returns ErrWoken, and
	// the worker keeps the lease.
	Park(ctx context.Context, l Lease, wake uint64, due time.Time) error
	// Break takes the lease from its holder, if there is one. The holder can write nothing
	// any more.
	Break(ctx context.Context, a Account) error
	// Due returns accounts that no worker has and that need one, at most limit: they have new
	// requests or orders, or their due time has passed.
	Due(ctx context.Context, now time.Time, limit int) ([]Account, error)

	// Load returns the head and the open records of an account. It returns ErrFenced if the
	// lease is lost.
	Load(ctx context.Context, l Lease) (Loaded, error)
	// Inbox returns the orders that were not carried out, and the first requests without a
	// nonce, at most limit. Requests with a higher [Request.Priority] come first, and equal
	// ones in the order of their ids.
	Inbox(ctx context.Context, a Account, limit int) (Inbox, error)
	// Commit writes a batch and returns the wake version. It returns ErrFenced if the lease
	// is lost. It returns ErrConflict if the stored version is not that of b.Head, because
	// the batch was then decided on an outdated state.
	Commit(ctx context.Context, l Lease, now time.Time, b Batch) (wake uint64, err error)
}
