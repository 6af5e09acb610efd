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
	// ErrVersion is wrapped by the error of Open if the tables are of another version of this
	// package.
	ErrVersion = errors.New("pglog: the tables have another version")
	// ErrUnknown is wrapped by the error of a call whose outcome is unknown, because the database
	// did not answer for Config.Patience. The log refuses all later writes.
	ErrUnknown = errors.New("pglog: the database does not answer")
	// ErrBehind is wrapped by the error of Lead if records that this process has not read are gone,
	// because the log was replaced when this process had not been seen for Config.Keep. Open the
	// log again, and read it with Replay.
	ErrBehind = errors.New("pglog: records that this process has not read are gone")
)

// Config is the configuration of a log.
type Config struct {
	// URL is the connection string of the database, as a URL or as keywords. Parameters of pgx
	// such as pool_max_conns can be in it.
	URL string
	// Name is the name of the rollup's log: lower-case letters, digits and underscores, up to 40,
	// the first one a letter. Logs of different names share nothing.
	Name string
	// Address is the address of this process for the others, for example of its RPC: see
	// [Log.Leader]. Each process has another one, of up to 1,000 bytes of text. It may be empty.
	Address string
	// Lease is how long the lead stays with a process that does not renew it, at least 100 ms.
	// The process renews it three times as often.
	Lease time.Duration
	// Poll is how often a process that follows looks for new records. It must be positive.
	Poll time.Duration
	// Keep is how long records that were replaced are kept for a process that follows and has not
	// read them, since it was last seen. It must be positive.
	Keep time.Duration
	// Patience is how long a write is tried again while the database cannot be reached. Until
	// then Append waits. It must be positive. While the database answers that it has no room, the
	// write is tried again without end, because its outcome is known.
	Patience time.Duration
	// Synchronous is the operator's promise that no standby is ever promoted that lacks a record
	// which was acknowledged: commits wait for the standby, no operator cancels that wait, and the
	// standby that is promoted is one for which they wait. Promoted is false then, so that the
	// builder goes on at once. Without the promise, a builder that leads after a promotion makes no
	// package for a time, in which a lost package could still arrive.
	Synchronous bool
	// Logger receives messages for operators. Nil means silent.
	Logger *slog.Logger
}

// DefaultConfig returns a configuration with a lease of three seconds and a patience of a minute. A
// process that follows looks for records every 50 ms, and they are kept for it for a day.
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

// answerTime is the time after which an answer of the database is late.
func (c *Config) answerTime() time.Duration { return max(c.Lease, time.Second) }
