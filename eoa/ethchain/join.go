package ethchain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/internal/backoff"
)

// Joined is several endpoints of one chain, for example of different providers,
// as one [eoa.BlobChain]. Create one with [Join]. It is safe for concurrent use,
// and all accounts of the chain should share one, because it remembers which
// endpoints work.
//
// Transactions go to all endpoints that work. One is accepted if any endpoint
// accepts it, and rejected only if all endpoints that work reject it. Every
// other question goes to one endpoint, and to the next if that one fails, asks
// to wait, is more than two blocks behind, contradicts the transactions that the
// executor knows, or returns ErrReverted. An endpoint that failed is left out
// for a while, from one second to one minute; meanwhile it may have transactions
// that the others reject.
//
// A look asks all endpoints that work if the account is new to its executor,
// every ten seconds for each account, and at most once per second for all
// accounts. An endpoint that does not answer within two seconds of another one
// has failed. One that contradicts the best of them is then asked last, and its
// refusals do not count. [eoa.Look.Doubt] names the two endpoints and their
// answers.
type Joined struct {
	ends []endpoint

	mu      sync.Mutex
	current int    // index of the endpoint that is asked first
	highest uint64 // highest block that any endpoint had
	// surveyed has the time of the last look at all endpoints for each account,
	// and lastSurvey that for any account.
	surveyed   map[common.Address]time.Time
	lastSurvey time.Time
}

// endpoint is one of several nodes.
type endpoint struct {
	chain    eoa.BlobChain
	failures int       // in a row
	until    time.Time // left out until then
	err      error     // of the last failure
	height   uint64
	moved    time.Time // when it first had the height
	// doubt is the contradiction to another endpoint about the account doubtOf.
	doubt      error
	doubtOf    common.Address
	doubtUntil time.Time
}

var _ eoa.BlobChain = (*Joined)(nil)

// Endpoint is the state of one endpoint of a [Joined].
type Endpoint struct {
	// Height is the latest block that it had when it was last asked.
	Height uint64
	// Failures is the number of failed calls since the last one that worked.
	Failures int
	// Err is the error of the last failed call; nil if Failures is 0.
	Err error
	// Until is when it is used again; not in the future if it is in use.
	Until time.Time
	// Doubt says in which answers it contradicts another endpoint; nil if it
	// does not. It is asked last then.
	Doubt error
}

const (
	// maxLag is the number of blocks that an endpoint may be behind the others.
	maxLag = 2
	// firstRest and longestRest are how long an endpoint is left out after one
	// failure, and after many.
	firstRest, longestRest = time.Second, time.Minute
	// leastGrace is how long the other endpoints may take for a send when one
	// has accepted everything. They may take as long as that one did.
	leastGrace = 250 * time.Millisecond
)

// Join returns the endpoints as one chain. They are asked in this order. It
// returns an error if there is none, one is nil, or those from [New] have
// different values of [Options.ChainID]. Set that option: an endpoint on another
// chain then counts as failed.
func Join(chains ...eoa.BlobChain) (*Joined, error) {
	j := &Joined{ends: make([]endpoint, len(chains)), surveyed: map[common.Address]time.Time{}}
	for i, c := range chains {
		if c == nil {
			return nil, fmt.Errorf("ethchain: endpoint %d is nil", i)
		}
		j.ends[i].chain = c
		if id, of := chainOf(c); of {
			if first, also := chainOf(chains[0]); also && id != first {
				return nil, fmt.Errorf("ethchain: endpoint %d is for chain %d, endpoint 0 for %d", i, id, first)
			}
		}
	}
	if len(chains) == 0 {
		return nil, errors.New("ethchain: no endpoint, want at least one")
	}
	return j, nil
}

// chainOf returns the Options.ChainID of a chain from New.
func chainOf(c eoa.BlobChain) (id uint64, known bool) {
	if chain, ok := c.(*Chain); ok {
		return chain.o.ChainID, true
	}
	return 0, false
}

// Endpoints returns the state of each endpoint, in the order of [Join].
func (j *Joined) Endpoints() []Endpoint {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]Endpoint, len(j.ends))
	for i := range j.ends {
		e := &j.ends[i]
		out[i] = Endpoint{Height: e.height, Failures: e.failures, Err: e.err, Until: e.until}
		if e.doubted(time.Now()) {
			out[i].Doubt = e.doubt
		}
	}
	return out
}

// order returns the endpoints that work, the current one first, then those that
// contradict others, and then those that are left out.
func (j *Joined) order() (working, doubted, resting []int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	for k := range j.ends {
		switch i := (j.current + k) % len(j.ends); {
		case now.Before(j.ends[i].until):
			resting = append(resting, i)
		case j.ends[i].doubted(now):
			doubted = append(doubted, i)
		default:
			working = append(working, i)
		}
	}
	return working, doubted, resting
}

// note records whether a call to an endpoint worked. An endpoint that failed is
// left out for a while.
func (j *Joined) note(i int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := &j.ends[i]
	if e.err = err; err == nil {
		e.failures, e.until = 0, time.Time{}
		return
	}
	e.failures++
	rest := backoff.Wait(firstRest, longestRest, e.failures)
	var busy *eoa.BusyError
	if errors.As(err, &busy) && busy.RetryAfter > 0 {
		rest = min(busy.RetryAfter, longestRest)
	}
	e.until = time.Now().Add(rest)
}

// sees remembers an endpoint's height, and reports whether it is up to date.
func (j *Joined) sees(i int, height uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := &j.ends[i]; e.height != height || e.moved.IsZero() {
		e.height, e.moved = height, time.Now()
	}
	j.highest = max(j.highest, height)
	return height+maxLag >= j.highest
}

// try calls f with one endpoint after the other, until f returns true. Each gets
// an equal share of the time that is left. f returns an error if the endpoint
// failed. The error wraps an eoa.BusyError only if all ask to wait.
func (j *Joined) try(ctx context.Context, f func(ctx context.Context, i int) (done bool, err error)) error {
	working, doubted, resting := j.order()
	working = append(working, doubted...)
	all := append(working, resting...)
	var failed, busy []error
	for k, i := range all {
		left := len(working) - k
		if left <= 0 {
			left = len(all) - k
		}
		part, cancel := share(ctx, left)
		done, err := f(part, i)
		cancel()
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err() // not the endpoint's fault
		}
		j.note(i, err)
		var wait *eoa.BusyError
		switch {
		case done:
			return nil
		case errors.As(err, &wait):
			busy = append(busy, err)
		case err != nil:
			failed = append(failed, fmt.Errorf("endpoint %d: %w", i, err))
		}
	}
	if len(failed) == 0 {
		return errors.Join(busy...)
	}
	return errors.Join(failed...)
}

// share returns a context for one of n calls that follow each other.
func share(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	if end, limited := ctx.Deadline(); limited {
		return context.WithTimeout(ctx, time.Until(end)/time.Duration(n))
	}
	return context.WithCancel(ctx)
}

// Ask implements eoa.Chain. The endpoint of the last look answers, unless it
// fails.
func (j *Joined) Ask(ctx context.Context, q eoa.Questions) (a eoa.Answers, err error) {
	err = j.try(ctx, func(ctx context.Context, i int) (bool, error) {
		a, err = j.ends[i].chain.Ask(ctx, q)
		return err == nil, err
	})
	return a, err
}

// Estimate implements [eoa.Chain]. The requests that an endpoint cannot estimate
// go to the next one. A request reverts only if all endpoints that work say so,
// because one of them may be behind.
func (j *Joined) Estimate(ctx context.Context, from common.Address, requests []*eoa.Request) []eoa.Estimated {
	out := make([]eoa.Estimated, len(requests))
	left := make([]int, len(requests)) // indexes
	for i := range left {
		left[i] = i
	}
	working, doubted, resting := j.order()
	for _, others := range [][]int{doubted, resting} {
		if len(working) == 0 {
			working = others
		}
	}
	asked := 0
	_ = j.try(ctx, func(ctx context.Context, e int) (bool, error) {
		answers := j.ends[e].chain.Estimate(ctx, from, pick(requests, left))
		asked++
		var next, unknown []int
		var err error
		for k, i := range left {
			answer := answers[k]
			reverts := errors.Is(answer.Err, eoa.ErrReverted)
			if answer.Err != nil {
				next = append(next, i)
			}
			if answer.Err != nil && !reverts {
				unknown, err = append(unknown, i), answer.Err
			}
			if asked == 1 || !reverts { // an unknown answer outweighs a revert
				out[i] = answer
			}
		}
		if len(unknown) < len(left) {
			err = nil // the endpoint works
		}
		if left = next; asked >= len(working) {
			left = slices.DeleteFunc(left, func(i int) bool { return errors.Is(out[i].Err, eoa.ErrReverted) })
		}
		return len(left) == 0, err
	}) // the errors are in out
	return out
}

// pick returns the elements of all with the given indexes.
func pick[T any](all []T, indexes []int) []T {
	out := make([]T, len(indexes))
	for k, i := range indexes {
		out[k] = all[i]
	}
	return out
}
