package eoa

import (
	"log/slog"
	"time"

	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/internal/fields"
)

// Config configures an [Executor]. Start with [DefaultConfig].
type Config struct {
	// Fees decides when a transaction that is not mined is replaced at a higher
	// price.
	Fees FeePolicy
	// Confirmations is the number of blocks, including the transaction's own,
	// after which a request is Confirmed; 1 to 2^20. The default is 3.
	Confirmations uint64
	// MaxInFlight is the maximum number of requests with a nonce that are in no
	// block, if a node is known to have all of them; 1 to 2^20. The default is
	// 100.
	MaxInFlight int
	// MaxUnsure replaces MaxInFlight, if it is lower, while any of those
	// requests is not known to be on a node; 1 to 2^20. The default is 64,
	// which is also go-ethereum's limit for transactions that follow a gap.
	MaxUnsure int
	// Delegated means that the account has code (EIP-7702), or may get it while
	// transactions are in flight. Nodes then take one transaction at a time, so
	// at most one is in flight. If false, that holds while a look shows code;
	// see [Look.Delegated]. The default is false.
	Delegated bool
	// Batch is the maximum number of requests that are signed, committed and
	// sent together; 1 to 1000. The default is 100.
	Batch int
	// Rebroadcast is the interval at which the same bytes are sent again while
	// they are in no block; above 0, at most 24 hours. The default is 30
	// seconds.
	Rebroadcast time.Duration
	// Retry is the wait before the first retry of a failed call; above 0, at
	// most one minute. It doubles with each failure, up to one minute. A node
	// that needs longer for an estimate lets requests go first whose gas is
	// given. The default is one second.
	Retry time.Duration
	// Poll is how often the chain is read while something is open; at most 24
	// hours. 0 means only after [Executor.NewHead] and at every Rebroadcast.
	// The default is 3 seconds.
	Poll time.Duration
	// Timeout is the time limit of each call to the chain or the signer; above
	// 0, at most one hour. A call that exceeds it has failed with an unknown
	// outcome. The default is 10 seconds.
	Timeout time.Duration
	// Parallel is the maximum number of signatures that are requested at the
	// same time, and of estimates that are repeated; 1 to 1024. A batch of
	// signatures takes as long as Batch divided by Parallel calls. The default
	// is 32.
	Parallel int
	// LeaseFor is how long the account stays reserved for a worker that does
	// not renew its lease; one second to 24 hours. The default is 30 seconds.
	LeaseFor time.Duration
	// GasMargin is added to gas estimates, in percent; 0 to 1000. If an
	// estimate fits into a block and into a transaction (EIP-7825), the sum
	// does as well. A sum that a node refuses is replaced by the estimate. The
	// default is 20.
	GasMargin uint64
	// CellProofs sends blobs with cell proofs (sidecar version 1, EIP-7594),
	// which networks expect from the Osaka fork on. If it is false, each blob
	// has one proof (version 0). Changing it does not invalidate signed
	// transactions: they are sent in the new form under the same hash. The
	// default is true.
	CellProofs bool
	// Requeue submits a request again, under its key followed by "~" and its
	// id, if another transaction has provably taken its nonce.
	Requeue bool
	// Retention limits the history of the account in the store.
	Retention Retention
	// Exclusive means that no other program has the account's key, and that the
	// account's code, if any, creates no contracts. A transaction of the account
	// that the store does not know then proves that the store lost writes, and
	// stops the account with ErrStoreRolledBack, also if no process remembers
	// them. This includes a store that knows nothing of an account with
	// transactions; [Client.Resume] accepts transactions that the account sent
	// before it came to the store. If false, an account is exclusive only in a
	// store that may lose acknowledged writes ([Loaded.MayLose]), as Redis may,
	// unless SharedKey is set. The default is false.
	Exclusive bool
	// SharedKey means that other programs send transactions from the account, so
	// that it is not exclusive in any store. If the store then loses writes that
	// no process remembers, requests may be executed twice. The default is false;
	// Exclusive and SharedKey cannot both be set.
	SharedKey bool
	// Witness notices that the store lost writes. All executors of a process
	// should share one; nil means one for this executor, fleet or runner alone.
	Witness *Witness
	// Observe, if not nil, is called with a report at the end of each step,
	// within the step. It must not call the executor.
	Observe func(Report)
	// Logger receives warnings about failures that are retried, and about problems that
	// have begun, for example that the account lacks funds; nil means silent.
	Logger *slog.Logger
	// Now returns the current time. Nil means time.Now. Tests replace it.
	Now func() time.Time
}

const (
	// maxBatch bounds Config.Batch.
	maxBatch = 1000
	// maxGas is more than any block holds: a higher estimate is a node's
	// mistake.
	maxGas uint64 = 1 << 40
	// leastWindow is the number of batches of pending requests that are read at
	// once. If none of the requests can be sent, the window doubles, up to
	// maxWindow requests.
	leastWindow, maxWindow = 8, 1 << 14
)

// DefaultConfig returns the defaults, which suit a chain with a block every few
// seconds.
func DefaultConfig() Config {
	return Config{
		Fees: account.DefaultFeePolicy(), Confirmations: 3, MaxInFlight: 100, MaxUnsure: 64, Batch: 100,
		Rebroadcast: 30 * time.Second, Retry: time.Second, Poll: 3 * time.Second, Timeout: 10 * time.Second, Parallel: 32, LeaseFor: 30 * time.Second, GasMargin: 20, CellProofs: true,
		Retention: account.DefaultRetention(),
	}
}

// Validate returns an error that lists each field out of range, with its value
// and the allowed range. The error wraps ErrInvalidConfig.
func (c *Config) Validate() error {
	const day, count, percent = 24 * time.Hour, 1 << 20, 1000
	var wrong fields.Errors
	wrong.AddPart("Fees", c.Fees.Validate())
	wrong.Add(c.Retention.Validate())
	wrong.Want(!c.Exclusive || !c.SharedKey, "Exclusive", "true with SharedKey", "at most one of the two")
	fields.Range(&wrong, "Confirmations", c.Confirmations, 1, count)
	fields.Range(&wrong, "MaxInFlight", c.MaxInFlight, 1, count)
	fields.Range(&wrong, "MaxUnsure", c.MaxUnsure, 1, count)
	fields.Range(&wrong, "Batch", c.Batch, 1, maxBatch)
	fields.Range(&wrong, "Rebroadcast", c.Rebroadcast, 1, day)
	fields.Range(&wrong, "Retry", c.Retry, 1, account.MaxRetry)
	fields.Range(&wrong, "Poll", c.Poll, 0, day)
	fields.Range(&wrong, "Timeout", c.Timeout, 1, time.Hour)
	fields.Range(&wrong, "Parallel", c.Parallel, 1, 1024)
	fields.Range(&wrong, "LeaseFor", c.LeaseFor, time.Second, day)
	fields.Range(&wrong, "GasMargin", c.GasMargin, 0, percent)
	return wrong.Wrap(ErrInvalidConfig)
}

// rules returns the settings that the decisions depend on.
func (c *Config) rules() account.Rules {
	return account.Rules{
		Fees: c.Fees, Confirmations: c.Confirmations, MaxInFlight: c.MaxInFlight, MaxUnsure: c.MaxUnsure, Delegated: c.Delegated,
		Batch: c.Batch, Rebroadcast: c.Rebroadcast, Retry: c.Retry, GasMargin: c.GasMargin, Requeue: c.Requeue,
		Retention: c.Retention, Exclusive: c.Exclusive,
	}
}
