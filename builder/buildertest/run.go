package buildertest

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/journal"
)

// Case describes a rollup under test, for [Run] and the other functions of this
// package.
type Case[B any] struct {
	// New returns the rollup at its genesis. A run kills the builder's process and starts
	// it again, and calls New for each process. The rollups that New returns must share
	// nothing. If a rollup is an io.Closer, the test closes it when its process ends.
	New func() builder.Rollup[B]
	// Open replaces New for a rollup that keeps files. The directory dir is empty at first, and
	// it is the same for all processes of a run. The test first opens a rollup only to read its
	// root, and closes that rollup if it is an io.Closer.
	Open func(dir string) builder.Rollup[B]
	// Log opens the log for one process of a run. The directory dir is empty at first,
	// and it is the same for all processes. The test closes the log when the process
	// ends. Nil means a log in memory. A log does not work in virtual time if its
	// goroutines wait for goroutines outside the run, as a log on Pebble does.
	Log func(dir string) (journal.Journal, error)
	// Operation returns the operation with a number, counted from 0. All operations must be
	// different. Up to 16 users submit them, nearly in this order, and submit a refused
	// operation up to three times within three minutes. If operations have accounts, there
	// should be several accounts.
	Operation func(i int) []byte
	// Executed returns the operations that the rollup's service executes for a
	// payload, in order.
	Executed func(payload []byte) [][]byte
	// Dropped returns the operations that a rollup has dropped for good because they can never
	// run. Nil means that the rollup never drops operations.
	Dropped func(rollup builder.Rollup[B]) [][]byte
	// OwnOrder is true if the rollup itself decides on the order of the waiting operations, as a
	// mempool does. If it is false, the operations of an undone block must come before all others.
	OwnOrder bool
	// Operations is the number of operations in a run. 0 means 30.
	Operations int
}

// in returns a copy whose New opens a rollup with files in the directory dir.
func (c Case[B]) in(dir string) Case[B] {
	if c.Open != nil {
		c.New = func() builder.Rollup[B] { return c.Open(dir) }
	}
	return c
}

const (
	usualOperations = 30
	usualSeeds      = 50
)

// Run tests a rollup with many seeds, as the package documentation describes. It
// reports the first seed that fails.
func Run[B any](t *testing.T, c Case[B]) {
	t.Helper()
	if c.Operations == 0 {
		c.Operations = usualOperations
	}
	first, n := uint64(0), number("BUILDERTEST_SEEDS", usualSeeds)
	if os.Getenv("BUILDERTEST_SEED") != "" {
		first, n = number("BUILDERTEST_SEED", 0), 1
	}
	for seed := first; seed < first+n; seed++ {
		log, problem := play(t, c, seed)
		if problem == nil {
			continue
		}
		t.Errorf("%v\n\nrepeat with: BUILDERTEST_SEED=%d go test -run '^%s$'\n\n%s", problem, seed, t.Name(), log)
		return
	}
}

// Sweep tests crashes systematically: it repeats a run and kills the process at a
// different moment each time. A moment is before or after each write to the log,
// each call of the rollup and each send. In each run a second process then
// continues. step is the distance between two of the chosen moments; 1 means all
// moments. Sweep returns the number of moments.
func Sweep[B any](t *testing.T, c Case[B], seed uint64, step int) (moments int) {
	t.Helper()
	if c.Operations == 0 {
		c.Operations = usualOperations
	}
	moments, log, problem := playLives(t, c, seed, func(*world[B]) []int { return nil })
	for at := 1; at <= moments && problem == nil; at += step {
		if _, log, problem = playLives(t, c, seed, func(*world[B]) []int { return []int{at} }); problem != nil {
			problem = fmt.Errorf("killed at moment %d of %d: %w", at, moments, problem)
		}
	}
	if problem != nil {
		t.Errorf("seed %d, %v\n\nrepeat with: go test -run '^%s$'\n\n%s", seed, problem, t.Name(), log)
	}
	return moments
}

// Find returns the first seed below most whose run fails, together with the
// problem. Tests use it to check that a certain fault of a rollup is found.
func Find[B any](t *testing.T, c Case[B], most uint64) (seed uint64, problem error) {
	t.Helper()
	if c.Operations == 0 {
		c.Operations = usualOperations
	}
	for seed := range most {
		if _, problem := play(t, c, seed); problem != nil {
			return seed, problem
		}
	}
	return most, nil
}

func number(variable string, usual uint64) uint64 {
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s is %q, want a number", variable, text))
	}
	return n
}

// play runs the test with one seed in virtual time, and returns its diary.
func play[B any](t *testing.T, c Case[B], seed uint64) (log string, problem error) {
	t.Helper()
	_, log, problem = playLives(t, c, seed, (*world[B]).plan)
	return log, problem
}

// playLives is play with processes that are killed at the moments of deaths.
func playLives[B any](t *testing.T, c Case[B], seed uint64, deaths func(*world[B]) []int) (moments int, log string, problem error) {
	t.Helper()
	bubble.Run(t, func(t *testing.T) {
		var w *world[B]
		if w, problem = newWorld(c.in(t.TempDir()), seed); problem == nil {
			w.logs = t.TempDir()
			moments, problem = w.play(t.Context(), deaths(w))
			log = w.diary.text(w.namedIn(problem))
		}
	})
	return moments, log, problem
}
