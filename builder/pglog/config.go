package pglog

import (
	"errors"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jamq/jamq/internal/fields"
)

var (
	// ErrInvalidConfig is wrapped by the error of a configuration that cannot be used.
	ErrInvalidConfig = errors.New("pglog: invalid configuration")
	// ErrVersion is wrapped by the error of Open if another version of this package has created the
	// tables.
	ErrVersion = errors.New("pglog: the tables have another version")
	// ErrUnknown is wrapped by the error of a call whose outcome is unknown, because the database
	// did not answer for Config.Patience. The log refuses all later writes of this process.
	ErrUnknown = errors.New("pglog: the database does not answer")
	// ErrBehind is wrapped by the error of Lead if the log no longer has records that this process
	// has not read. This happens if the log was replaced after this process had not been seen for
	// Config.Keep. The process must open the log again and read it with Replay.
	ErrBehind = errors.New("pglog: records that this process has not read are gone")
)

// Config is the configuration of a log.
type Config struct {
	// URL is the connection string of the database, as a URL or as keywords. It may contain
	// parameters of pgx such as pool_max_conns.
	URL string
	// Name is the name of the rollup's log: up to 40 lower-case letters, digits and underscores,
	// and a letter first. Logs with different names share nothing.
	Name string
	// Address is an address under which other processes reach this one, for example that of its
	// RPC: see [Log.Leader]. Each process must have a different one, of up to 1,000 bytes of text.
	// It may be empty.
	Address string
	// Lease is how long a process that leads keeps the lead without renewing it, at least 100 ms.
	// The process renews the lead three times in this time. If it dies, another process can lead
	// after Lease.
	Lease time.Duration
	// Poll is how long a process that follows waits before it checks again for new records. It must
	// be positive.
	Poll time.Duration
	// Keep is how long the log keeps replaced records for a process that follows and has not read
	// them, counted from when that process was last seen. It must be positive.
	Keep time.Duration
	// Patience is how long Append tries to write while the database cannot be reached. It must be
	// positive. While the database answers that it has no room, Append tries without a limit,
	// because the outcome of such a write is known.
	Patience time.Duration
	// Synchronous is the operator's promise that a standby which lacks an acknowledged record is
	// never promoted. For this, commits must wait for the standby, no operator may cancel that
	// wait, and only a standby for which they wait may be promoted.
	//
	// With this promise Promoted is always false, so that the builder continues at once after a
	// promotion. Without it, a builder that leads after a promotion makes no packages for some
	// time, because a package whose record was lost could still arrive.
	Synchronous bool
	// Logger receives messages for operators. Nil means that there are no messages.
	Logger *slog.Logger
}

// DefaultConfig returns a configuration with a lease of three seconds and a patience of a minute. A
// process that follows checks for records every 50 ms, and the log keeps replaced records for it
// for a day.
func DefaultConfig(url, name string) Config {
	return Config{
		URL: url, Name: name, Lease: 3 * time.Second, Poll: 50 * time.Millisecond, Keep: 24 * time.Hour, Patience: time.Minute,
	}
}

var validName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

const (
	leastLease  = 100 * time.Millisecond
	mostAddress = 1000 // bytes
)

// Validate returns an error that wraps ErrInvalidConfig and lists every field that cannot be used.
func (c *Config) Validate() error {
	var wrong fields.Errors
	_, err := pgxpool.ParseConfig(c.URL)
	wrong.Add(err)
	wrong.Want(c.URL != "", "URL", c.URL, "a connection string of PostgreSQL")
	wrong.Want(validName.MatchString(c.Name), "Name", c.Name, "1 to 40 of a to z, 0 to 9 and _, a letter first")
	wrong.Want(len(c.Address) <= mostAddress, "Address", len(c.Address), "at most 1000 bytes")
	wrong.Want(c.Lease >= leastLease, "Lease", c.Lease, "at least 100ms")
	fields.Positive(&wrong, "Poll", c.Poll)
	fields.Positive(&wrong, "Keep", c.Keep)
	fields.Positive(&wrong, "Patience", c.Patience)
	return wrong.Wrap(ErrInvalidConfig)
}

// answerTime returns how long the database may take to answer a short statement. After that time
// the connection counts as dead.
func (c *Config) answerTime() time.Duration { return max(c.Lease, time.Second) }
