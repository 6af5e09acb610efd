package eoa

import (
	"fmt"
	"log/slog"
	"time"
)

// Config sets an executor. Begin with [DefaultConfig].
type Config struct {
	// Fees says when a transaction that does not move is sent at a higher price.
	Fees FeePolicy
	// Confirmations is how many blocks, the transaction's own included, make it Confirmed; at least 1.
	Confirmations uint64
	// MaxInFlight bounds the requests with a nonce that are in no block, where a node is known to have all of them; MaxUnsure does where one
	// of them is not known to be anywhere. Nodes drop what does not follow without a gap, 64 being go-ethereum's limit. Both from 1.
	MaxInFlight, MaxUnsure int
	// Delegated: the account has code by EIP-7702, so nodes take one transaction at a time.
	Delegated bool
	// Batch is the most requests in one step, from 1 to MaxBatch.
	Batch int
	// Rebroadcast is after how long the same bytes are sent again while they are in no block, positive.
	Rebroadcast time.Duration
	// Retry is after how long something that failed without a verdict is tried again, positive. It doubles with each failure, to a minute.
	Retry time.Duration
	// Poll is how often the chain is looked at while something is open; 0 means only on [Executor.NewHead].
	Poll time.Duration
	// Timeout is how long a call to the chain or to the signer may take, positive. One that takes longer has failed, and says nothing.
	Timeout time.Duration
	// LeaseFor is how long the account stays ours without a sign of life, at least a second.
	LeaseFor time.Duration
	// GasMargin is added to estimates, in percent, from 0 to 1000.
	GasMargin uint64
	// CellProofs sends blobs with proofs of their cells (sidecars of version 1, EIP-7594), as networks want it from the Osaka fork on; else with one proof
	// for each blob (version 0). What was signed before a change is sent in the new form: its hash does not depend on it.
	CellProofs bool
	// Requeue accepts a request anew, under its key with "~" and its id, when another transaction has taken its nonce for good.
	Requeue bool
	// Observe is told what each step did, from within the step; nil for not. It must not call the executor.
	Observe func(Report)
	// Log is silent if nil.
	Log *slog.Logger
	// Clock is the machine's if nil.
	Clock Clock
}

// Limits and rules that are not settings.
const (
	// MaxBatch bounds Config.Batch.
	MaxBatch = 1000
	// maxHoles: with more nonces than that to fill, nothing new is sent.
	maxHoles = 50
	// noopGas is what a transfer to an account takes; noopGasDelegated leaves room for code that the account may have.
	noopGas, noopGasDelegated = 21_000, 100_000
	// maxGas is what no block holds: an estimate above it is a node's mistake.
	maxGas = 1 << 40
	// maxRetry bounds the doubling of Config.Retry.
	maxRetry = time.Minute
	// refusedBump is by how many percent a price is raised that a node refused, of a transaction that is nowhere; maxVoid how many such are kept.
	refusedBump, maxVoid = 100, 8
	// leastWindow is how many batches of pending requests are read; where none of these can be sent it is doubled, while there are less than maxWindow.
	leastWindow, maxWindow = 8, 1 << 14
)

// DefaultConfig is for a chain with blocks every few seconds.
func DefaultConfig() Config {
	return Config{
		Fees: DefaultFeePolicy(), Confirmations: 3, MaxInFlight: 100, MaxUnsure: 64, Batch: 100,
		Rebroadcast: 30 * time.Second, Retry: time.Second, Poll: 3 * time.Second, Timeout: 10 * time.Second, LeaseFor: 30 * time.Second, GasMargin: 20, CellProofs: true,
	}
}

// Validate names the first field that is out of range, its value and what is allowed. The error wraps ErrInvalidConfig.
func (c *Config) Validate() error {
	if err := c.Fees.Validate(); err != nil {
		return fmt.Errorf("%w: Fees: %w", ErrInvalidConfig, err)
	}
	for _, x := range []struct {
		name     string
		value    int64
		from, to int64
	}{
		{"Confirmations", int64(min(c.Confirmations, 1<<32)), 1, 1 << 20},
		{"MaxInFlight", int64(c.MaxInFlight), 1, 1 << 20},
		{"MaxUnsure", int64(c.MaxUnsure), 1, 1 << 20},
		{"Batch", int64(c.Batch), 1, MaxBatch},
		{"Rebroadcast", int64(c.Rebroadcast), 1, int64(24 * time.Hour)},
		{"Retry", int64(c.Retry), 1, int64(maxRetry)},
		{"Poll", int64(c.Poll), 0, int64(24 * time.Hour)},
		{"Timeout", int64(c.Timeout), 1, int64(time.Hour)},
		{"LeaseFor", int64(c.LeaseFor), int64(time.Second), int64(24 * time.Hour)},
		{"GasMargin", int64(min(c.GasMargin, 1<<32)), 0, 1000},
	} {
		if x.value < x.from || x.value > x.to {
			return fmt.Errorf("%w: %s is %d, want %d to %d", ErrInvalidConfig, x.name, x.value, x.from, x.to)
		}
	}
	return nil
}

func (c *Config) maxInFlight(sure bool) int {
	switch {
	case c.Delegated:
		return 1
	case sure:
		return c.MaxInFlight
	}
	return min(c.MaxInFlight, c.MaxUnsure)
}
