package riverjobs

import (
	"fmt"
	"time"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/jobs"
	"github.com/jamq/jamq/internal/fields"
)

// Config configures an [Engine]. Start with [DefaultConfig].
type Config struct {
	// Jobs configures the executors and when they are suspended. The engine
	// also uses Jobs.Executor.Logger.
	Jobs jobs.Config
	// Schema is the PostgreSQL schema of River's tables. Do not share it with other
	// users of River, because River's maintenance deletes jobs that it does not
	// know. It has 1 to 46 letters, digits and underscores, and does not begin with
	// a digit. The default is "jamq".
	Schema string
	// Workers is the maximum number of accounts that a process works on at the same
	// time; 1 to 10,000. Each needs a connection for a moment when its run ends.
	// The default is 16.
	Workers int
	// Poll is how often a process asks PostgreSQL for due jobs; at least one
	// millisecond. River notifies processes of most wake-ups, so that these do not
	// wait for Poll. If several come within 100 milliseconds, it notifies only of
	// the first. The default is 250 milliseconds.
	Poll time.Duration
	// Sweep is how often a process asks the store for due accounts and wakes them;
	// positive. The sweep resumes suspended accounts on time, because River alone
	// may be up to five seconds late. It also finds accounts whose wake-up is
	// missing. The default is one second.
	Sweep time.Duration
	// Timeout is the time limit of a run; more than Jobs.Slice. A run that exceeds
	// it is cancelled and tried again. The default is 30 seconds.
	Timeout time.Duration
}

// Limits that are not settings.
const (
	// queue is the name of River's queue, and kind is the name of the job type.
	queue, kind = "eoa", "eoa_step"
	// attempts is the number of consecutive failures after which a job is
	// discarded. Its row stays in the table for the operator, and the sweep inserts
	// a new job.
	attempts = 25
	// maxRetry limits the doubling of the executor's Retry between failures.
	maxRetry = time.Minute
	// dead is how long after its timeout a run counts as dead.
	dead = 5 * time.Second
	// kept is how long the row of a finished run is kept.
	kept = time.Minute
	// page is the maximum number of due accounts that a sweep wakes.
	page = 1024
	// cooldown is the minimum time between two queries for jobs. It is River's
	// default.
	cooldown = 100 * time.Millisecond
	// leave is how long a run may continue after its process has been asked to
	// stop.
	leave = time.Second
)

// DefaultConfig returns the defaults, which suit some thousands of accounts.
func DefaultConfig() Config {
	return Config{Jobs: jobs.DefaultConfig(), Schema: "jamq", Workers: 16, Poll: 250 * time.Millisecond, Sweep: time.Second, Timeout: 30 * time.Second}
}

// Validate returns an error that lists each field out of range. The error wraps
// eoa.ErrInvalidConfig.
func (c *Config) Validate() error {
	const maxWorkers = 10_000
	var wrong fields.Errors
	wrong.Add(checkSchema(c.Schema))
	fields.Range(&wrong, "Workers", c.Workers, 1, maxWorkers)
	wrong.Want(c.Poll >= time.Millisecond, "Poll", c.Poll, "at least 1ms")
	fields.Positive(&wrong, "Sweep", c.Sweep)
	wrong.Want(c.Timeout > c.Jobs.Slice, "Timeout", c.Timeout, fmt.Sprintf("more than Jobs.Slice, %v", c.Jobs.Slice))
	wrong.Add(c.Jobs.Validate())
	return wrong.Wrap(eoa.ErrInvalidConfig)
}
