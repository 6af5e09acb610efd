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
	// ErrFenced is wrapped by the error of a log whose process no longer leads, because another
	// one has taken the lead. Nothing of the refused call was written, and no later call will be.
	// Close the log, and open it again to wait for the lead.
	ErrFenced = errors.New("pglog: another process leads")
	// ErrVersion is wrapped by the error of Open if the tables are of another version of this
	// package.
	ErrVersion = errors.New("pglog: the tables have another version")
	// ErrUnknown is wrapped by the error of a call whose outcome is unknown, because the database
	// did not answer for Config.Patience. The log refuses all later writes.
	ErrUnknown = errors.New("pglog: the database does not answer")
)

// Config is the configuration of a log.
type Config struct {
	// URL is the connection string of the database, as a URL or as keywords. Parameters of pgx
	// such as pool_max_conns can be in it.
	URL string
	// Name is the name of the rollup's log: lower-case letters, digits and underscores, up to 40,
	// the first one a letter. Logs of different names share nothing.
	Name string
	// Address is the address of this process for the others, for example of its RPC. It may be
	// empty, and is up to 1,000 bytes of text. Others see it with [Leader].
	Address string
	// Lease is how long the lead stays with a process that does not renew it, at least 100 ms.
	// The process renews it three times as often.
	Lease time.Duration
	// Patience is how long a write is tried again while the database cannot be reached. Until
	// then Append waits. It must be positive.
	Patience time.Duration
	// Logger receives messages for operators. Nil means silent.
	Logger *slog.Logger
}

// DefaultConfig returns a configuration with a lease of three seconds and a patience of a minute.
func DefaultConfig(url, name string) Config {
	return Config{URL: url, Name: name, Lease: 3 * time.Second, Patience: time.Minute}
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
	fields.Positive(&wrong, "Patience", c.Patience)
	return wrong.Wrap(ErrInvalidConfig)
}
