package account

import "time"

// Rules are the settings that the decisions depend on. The fields are those of
// eoa.Config, which documents them.
type Rules struct {
	// Fees is Config.Fees.
	Fees FeePolicy
	// Confirmations is Config.Confirmations.
	Confirmations uint64
	// MaxInFlight is Config.MaxInFlight.
	MaxInFlight int
	// MaxUnsure is Config.MaxUnsure.
	MaxUnsure int
	// Delegated is Config.Delegated.
	Delegated bool
	// Batch is Config.Batch.
	Batch int
	// Rebroadcast is Config.Rebroadcast.
	Rebroadcast time.Duration
	// Retry is Config.Retry.
	Retry time.Duration
	// GasMargin is Config.GasMargin.
	GasMargin uint64
	// Requeue is Config.Requeue.
	Requeue bool
	// Retention is Config.Retention.
	Retention Retention
	// Exclusive is Config.Exclusive, or follows from Loaded.MayLose.
	Exclusive bool
}

// Limits that are not settings.
const (
	// maxHoles is the number of nonces to fill above which nothing new is sent.
	maxHoles = 50
	// noopGas is the gas of a transfer to the account itself; noopGasDelegated
	// leaves room for the account's code.
	noopGas, noopGasDelegated = 21_000, 100_000
	// maxTxGas is the most gas that a transaction may have (EIP-7825).
	maxTxGas = 1 << 24
	// nodeLag is the number of blocks that a node which estimates may be behind
	// the node that gave the last Look.
	nodeLag = 2
	// MaxRetry limits the doubling of Rules.Retry.
	MaxRetry = time.Minute
	// signAfter is the number of refusals in a row, for prices or gas, after
	// which a request is signed again with its nonce. giveUpAfter is the number
	// of permanent ones after which a noop replaces it. One refusal is no proof:
	// a gateway may return it for bytes that another node took.
	signAfter, giveUpAfter = 3, 6
	// refusedBump is the percentage by which a price is raised then; maxVoid is
	// the number of void attempts kept per record.
	refusedBump, maxVoid = 100, 8
)

func (c *Rules) maxInFlight(sure bool) int {
	if sure {
		return c.MaxInFlight
	}
	return min(c.MaxInFlight, c.MaxUnsure)
}
