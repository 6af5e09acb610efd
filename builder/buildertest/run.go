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

// Case is a rollup under test.
type Case[B any] struct {
	// New returns the rollup at its genesis. Each life of the process has another one,
	// which must share nothing with the others. If it is an io.Closer, it is closed at the
	// end of the life.
	New func() builder.Rollup[B]
	// Open replaces New for a rollup that keeps files. dir outlives the processes of a
	// run, and is empty at first. The kit opens a first rollup to read its root, and closes
	// it if it is an io.Closer.
	Open func(dir string) builder.Rollup[B]
	// Log opens the log of a life, in a directory that outlives the processes of a run and is
	// empty at first. The kit closes it at the end of the life. Nil means a log in memory. A log
	// whose goroutines wait for others outside of the run, such as one on Pebble, cannot live in
	// virtual time.
	Log func(dir string) (journal.Journal, error)
	// Operation returns the operation with a number from 0. No two may be equal. Up to 16 users
	// submit operations, almost in this order, and a refused one three times in three minutes.
	// If operations have accounts, let there be several.
	Operation func(i int) []byte
	// Executed returns the operations that the rollup's service executes for a
	// payload, in order.
	Executed func(payload []byte) [][]byte
	// Dropped returns the operations that a rollup has dropped for good because they cannot
	// run. Nil means that it drops none.
	Dropped func(rollup builder.Rollup[B]) [][]byte
	// OwnOrder means that the rollup orders the operations that wait itself, as a mempool does.
	// If it is false, those of an undone block must come before all others.
	OwnOrder bool
	// Operations is the number of operations in a run. 0 means 30.
	Operations int
}

// in returns a case whose New opens the rollup in a directory, if it keeps files.
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

// Run tests a rollup: see the package.
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

// Sweep kills the process at one moment of a run after another: before and after each
// write of the log, each call of the rollup and each send. Each moment is a run for
// itself, in which a second process goes on. step is the distance of two moments, 1 for
// all of them. Sweep returns the number of moments.
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

// Find returns the first seed below most whose run fails, with the problem. It is
// for tests that expect a fault to be found.
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

// play plays one seed in virtual time.
func play[B any](t *testing.T, c Case[B], seed uint64) (log string, problem error) {
	t.Helper()
	_, log, problem = playLives(t, c, seed, (*world[B]).plan)
	return log, problem
}

// playLives is play for lives that end at the given moments. It returns the number of
// moments of the last life.
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
