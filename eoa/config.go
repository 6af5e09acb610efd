package eoa

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/jamq/jamq/eoa/internal/account"
	"github.com/jamq/jamq/internal/fields"
)

// Config configures an [Executor]. Start with [DefaultConfig] and change fields.
// The fields of [Rules] are also fields of Config, for example cfg.Confirmations.
type Config struct {
	// Rules are the settings for decisions about requests: limits, prices and
	// waits.
	Rules
	// Poll is the time between two reads of the chain while the account has work;
	// at most 24 hours. With 0, the executor reads the chain only after each
	// [Executor.NewHead] and every Rebroadcast. The default is 3 seconds.
	Poll time.Duration
	// Timeout is the time limit of each call to the chain or the signer; above 0,
	// at most one hour. The outcome of a send that takes longer is unknown. The
	// default is 10 seconds.
	Timeout time.Duration
	// Parallel is how many signatures may be requested at the same time; 1 to 1024.
	// The same limit applies to gas estimates that are repeated after a failure.
	// The default is 32.
	Parallel int
	// LeaseFor is how long the account stays reserved for a worker that has died; one second
	// to 24 hours. Workers renew their leases after half of the time. The default is 30
	// seconds.
	LeaseFor time.Duration
	// CellProofs sends blobs with a proof for each cell (sidecar version 1,
	// EIP-7594), which networks expect from the Osaka fork on. If CellProofs is
	// false, each blob is sent with one proof (version 0). The setting may be
	// changed at any time: transactions that are already signed are then sent in
	// the other form, with the same hash. The default is true.
	CellProofs bool
	// SharedKey declares that other programs also sign for the account. The account
	// is then never treated as exclusive, even in a store that may lose writes; see
	// [Rules.Exclusive]. If such a store loses writes that no process remembers,
	// requests may be executed twice. Exclusive and SharedKey cannot both be set.
	// The default is false.
	SharedKey bool
	// Witness detects that the store has lost writes. All executors of a process
	// should share a witness. If it is nil, each executor, fleet or runner creates
	// its own.
	Witness *Witness
	// Observe is called with a report at the end of each step, unless it is nil. It must
	// return soon, and must not call the executor.
	Observe func(Report)
	// Logger receives warnings about failures that are tried again, and about
	// problems that have begun, for example a balance that is too low. If it is
	// nil, nothing is logged.
	Logger *slog.Logger
	// Now returns the current time, for tests. If it is nil, time.Now is used.
	Now func() time.Time
}

const (
	// day is the upper limit of settings that are intervals.
	day = 24 * time.Hour
	// maxGas is above any block's gas limit: a higher estimate is the node's
	// mistake.
	maxGas uint64 = 1 << 40
	// leastWindow is how many batches of waiting requests the executor usually
	// reads at once. If it can send none of them, it reads twice as many the next
	// time, up to maxWindow requests, because the requests behind them may be
	// sendable.
	leastWindow, maxWindow = 8, 1 << 14
)

// DefaultConfig returns the defaults, which suit a chain with a block every few
// seconds.
func DefaultConfig() Config {
	return Config{Rules: account.DefaultRules(), Poll: 3 * time.Second, Timeout: 10 * time.Second, Parallel: 32, LeaseFor: 30 * time.Second, CellProofs: true}
}

// Validate returns an error that lists each field out of range, with its value
// and the allowed range. The error wraps ErrInvalidConfig.
func (c *Config) Validate() error {
	var wrong fields.Errors
	wrong.Add(c.Rules.Validate())
	wrong.Want(!c.Exclusive || !c.SharedKey, "Exclusive", "true with SharedKey", "at most one of the two")
	fields.Range(&wrong, "Poll", c.Poll, 0, day)
	fields.Range(&wrong, "Timeout", c.Timeout, 1, time.Hour)
	fields.Range(&wrong, "Parallel", c.Parallel, 1, 1024)
	fields.Range(&wrong, "LeaseFor", c.LeaseFor, time.Second, day)
	return wrong.Wrap(ErrInvalidConfig)
}

// withDefaults returns the config with defaults in place of nil fields.
func (c Config) withDefaults() Config {
	c.Logger, c.Witness = cmp.Or(c.Logger, slog.New(slog.DiscardHandler)), cmp.Or(c.Witness, NewWitness())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
