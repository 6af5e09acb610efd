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
	// ErrInvalidConfig is wrapped by the error of Open if the configuration cannot be used.
	ErrInvalidConfig = errors.New("pglog: invalid configuration")
	// ErrVersion is wrapped by the error of Open if a different version of this package has
	// created the tables.
	ErrVersion = errors.New("pglog: the tables have another version")
	// ErrUnknown is wrapped by the error of a call whose outcome is unknown, because the
	// database did not answer within Config.Patience. The log refuses all later writes of this
	// process.
	ErrUnknown = errors.New("pglog: the database does not answer")
	// ErrBehind is wrapped by the error of Lead if the log no longer has records that this
	// process has not read. This happens if the records were replaced and the process was not
	// seen for longer than Config.Keep. The process must open the log again and read it with
	// Replay.
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
	// Address is an address that other processes can use to reach this process, for
	// example the address of its RPC: see [Log.Leader]. Each process must have a
	// different address. It has at most 1,000 bytes, and may be empty.
	Address string
	// Lease is the time after which a leader that has stopped can be replaced: if the leader
	// does not renew its lead within Lease, another process can lead. The leader renews it
	// three times in this time. Lease is at least 100 ms.
	Lease time.Duration
	// Poll is the time between two checks of a following process for new records. It must be
	// positive.
	Poll time.Duration
	// Keep is how long the log keeps replaced records for a following process that has not read
	// them yet. The time counts from the moment when that process was last seen. Keep must be
	// positive.
	Keep time.Duration
	// Patience is how long Append keeps trying while the database cannot be reached. It
	// must be positive. If the database answers that it has no room, Append keeps
	// trying without a limit, because it is known that nothing was written.
	Patience time.Duration
	// Synchronous is the operator's promise that no standby is ever promoted that lacks
	// an acknowledged record. To keep the promise, commits must wait for the standby, no
	// operator may cancel that wait, and only a standby that commits wait for may be
	// promoted.
	//
	// With this promise Promoted always returns false, so that the builder continues at
	// once after a promotion. Without it, a builder that leads after a promotion makes no
	// packages for some time, because a package whose record was lost could still be
	// accumulated.
	Synchronous bool
	// Logger receives messages for operators. Nil means that there are no messages.
	Logger *slog.Logger
}

// DefaultConfig returns the configuration for the log with the given name in the database
// at url. A leader that has stopped can be replaced after three seconds (Lease), a write
// is tried for one minute while the database cannot be reached (Patience), a following
// process looks for new records every 50 ms (Poll), and replaced records are kept for a
// day (Keep).
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

// answerTime returns the time within which the database must answer a short
// statement. If it does not, the connection counts as dead.
func (c *Config) answerTime() time.Duration { return max(c.Lease, time.Second) }
