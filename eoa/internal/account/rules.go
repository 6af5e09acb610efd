package account

import (
	"time"

	"github.com/jamq/jamq/internal/fields"
)

// Rules are the settings for decisions about requests: limits, prices and waits.
// They are part of [Config], and each decision of a [View] receives them.
type Rules struct {
	// Fees decides when a transaction that is not mined is replaced at a higher
	// price.
	Fees FeePolicy
	// Confirmations is how deep in the chain a block must be before its requests
	// are Confirmed. The newest block has depth 1. The range is 1 to 2^20, and the
	// default is 3.
	Confirmations uint64
	// MaxInFlight is the maximum number of requests that have a nonce and are in no
	// block; 1 to 2^20. It applies while a node is known to have all of these
	// requests; otherwise MaxUnsure does. The default is 100.
	MaxInFlight int
	// MaxUnsure replaces MaxInFlight while it is uncertain whether a node has all
	// requests in flight; 1 to 2^20. A node that lacks one of these requests keeps
	// only a few transactions behind the gap: 64 in go-ethereum, which is the
	// default. A value above MaxInFlight has no effect.
	MaxUnsure int
	// Batch is the maximum number of requests that are signed, stored and sent together; 1 to
	// 1000. The default is 100.
	Batch int
	// Rebroadcast is the time after which a transaction that is in no block is sent again,
	// because nodes forget transactions. It is above 0 and at most 24 hours. The default is 30
	// seconds.
	Rebroadcast time.Duration
	// Retry is the wait after a failed call to the chain, the signer or the store;
	// above 0, at most one minute. The wait doubles with each failure, up to one
	// minute. If a gas estimate takes longer than Retry, requests whose gas is
	// given go first. The default is one second.
	Retry time.Duration
	// GasMargin is how much gas a transaction gets in addition to the node's
	// estimate, in percent; 0 to 1000. The margin never lifts the gas above the
	// limit of a block or of a transaction (EIP-7825). If a node still refuses the
	// gas limit, the estimate is used without a margin. The default is 20.
	GasMargin uint64
	// Requeue submits a request again if another program's transaction has used its
	// nonce. The key of the new request is the old key, followed by "~" and the id
	// of the old record.
	Requeue bool
	// Retention limits the history of the account in the store.
	Retention Retention
	// Exclusive promises that no other program signs for the account, and that the
	// account's code, if it has any, creates no contracts. A transaction of the
	// account that the store does not know then proves that the store has lost
	// writes. The account stops with ErrStoreRolledBack, even if no process
	// remembers the lost writes. The account also stops if it has transactions on
	// the chain and the store knows nothing of the account. If these transactions
	// were sent before the account was used with this store, call [Client.Resume].
	//
	// Even if Exclusive is false, the promise is assumed for a store that may lose
	// writes ([Loaded.MayLose]), such as Redis, unless Config.SharedKey is set. The
	// default is false.
	Exclusive bool
}

// DefaultRules returns the defaults, which suit a chain with a block every few
// seconds.
func DefaultRules() Rules {
	const day = 24 * time.Hour
	return Rules{
		Fees: FeePolicy{StallTimeout: 5 * time.Minute, BumpPercent: 20}, Retention: Retention{Age: 7 * day, Count: 100_000, EventAge: 30 * day},
		Confirmations: 3, MaxInFlight: 100, MaxUnsure: 64, Batch: 100, Rebroadcast: 30 * time.Second, Retry: time.Second, GasMargin: 20,
	}
}

// Validate returns an error that lists each field out of range, with its value
// and the allowed range. The error wraps ErrInvalidConfig.
func (c *Rules) Validate() error {
	const day, count, batch, percent = 24 * time.Hour, 1 << 20, 1000, 1000
	var wrong fields.Errors
	wrong.AddPart("Fees", c.Fees.Validate())
	wrong.Add(c.Retention.Validate())
	fields.Range(&wrong, "Confirmations", c.Confirmations, 1, count)
	fields.Range(&wrong, "MaxInFlight", c.MaxInFlight, 1, count)
	fields.Range(&wrong, "MaxUnsure", c.MaxUnsure, 1, count)
	fields.Range(&wrong, "Batch", c.Batch, 1, batch)
	fields.Range(&wrong, "Rebroadcast", c.Rebroadcast, 1, day)
	fields.Range(&wrong, "Retry", c.Retry, 1, MaxRetry)
	fields.Range(&wrong, "GasMargin", c.GasMargin, 0, percent)
	return wrong.Wrap(ErrInvalidConfig)
}

// Limits that are not settings.
const (
	// maxGaps limits the number of gaps in the nonces that are recorded and filled
	// at a time.
	maxGaps = 50
	// noopGas is the gas of a transfer of 0 wei to the account itself. If the
	// account has code, the transfer runs the code and gets noopGasDelegated.
	noopGas, noopGasDelegated = 21_000, 100_000
	// maxTxGas is the most gas that a transaction may have (EIP-7825).
	maxTxGas = 1 << 24
	// nodeLag is how many blocks the executor allows a node to be behind. A gas estimate may
	// come from another node than the last Look, because both can stand behind the same
	// gateway. A revert therefore counts at once only if the account's last transaction is
	// more than nodeLag blocks old; otherwise the request is tried again.
	nodeLag = 2
	// MaxRetry is the longest wait after failures; see Rules.Retry.
	MaxRetry = time.Minute
	// signAfter is how often in a row nodes must refuse a transaction for its price
	// or gas before the executor signs it again with the same nonce. giveUpAfter is
	// how often in a row they must refuse it for good before the executor signs a
	// no-op for its nonce. One refusal is not enough, because a gateway may return
	// the refusal of one node for bytes that another node has accepted.
	signAfter, giveUpAfter = 3, 6
	// refusedBump is by how many percent the price of a refused transaction is
	// raised. maxVoid is how many void attempts a record keeps.
	refusedBump, maxVoid = 100, 8
)

func (c *Rules) maxInFlight(sure bool) int {
	if sure {
		return c.MaxInFlight
	}
	return min(c.MaxInFlight, c.MaxUnsure)
}
