package builder

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jamq/jamq/submit"
)

// Health is the condition of a builder: that of its runner, and the calls of the host.
type Health struct {
	submit.Health
	// Calls describes the methods of the host of which a call runs, or of which the last
	// call failed, sorted by name. docs/embedding.md has what each of them holds up.
	Calls []Call
}

// Call describes the calls of one method of the host: of rollup, network, codec and log, and
// Config.Runner.Observe. Network.Follow, which always runs, is not among them.
type Call struct {
	// Method is the method with its type, for example "Rollup.Apply". The optional parts of a
	// rollup count as Rollup.
	Method string
	// Running is the number of calls that have not returned. The oldest of them began at Since,
	// which is zero if there is none.
	Running int
	Since   time.Time
	// Failures counts the calls that have failed since the last success, the first of them at
	// FailingSince and the last one at FailedAt. Err is the error of the last one, or nil. An
	// error by which Check or Admit refuses an operation is no failure, but a panic is. ErrIdle
	// is none, nor is any error after the builder has canceled the context of the call.
	Failures               int
	FailingSince, FailedAt time.Time
	Err                    error
}

// Stuck returns the call that needs an operator most: one that has run for at least the given
// time, or a method that has failed again and again for that time, and still did within it. It
// returns false if there is none.
func (h *Health) Stuck(after time.Duration) (call Call, found bool) {
	longest := after
	for _, c := range h.Calls {
		took := c.FailedAt.Sub(c.FailingSince)
		if time.Since(c.FailedAt) > after { // nothing has needed it since
			took = 0
		}
		if c.Running > 0 {
			took = max(took, time.Since(c.Since))
		}
		if took >= longest && took > 0 {
			call, found, longest = c, true, took
		}
	}
	return call, found
}

// String describes the call for an operator.
func (c Call) String() string {
	var parts []string
	if c.Running > 0 {
		parts = append(parts, fmt.Sprintf("%d calls run, the oldest since %s", c.Running, c.Since.UTC().Format(time.RFC3339)))
	}
	if c.Failures > 0 {
		parts = append(parts, fmt.Sprintf("it has failed %d times since %s: %v", c.Failures, c.FailingSince.UTC().Format(time.RFC3339), c.Err))
	}
	return c.Method + ": " + strings.Join(parts, "; ")
}

// Health returns the condition of the builder. It can be called at any time, also after Run has
// returned.
func (b *Builder[B]) Health() Health {
	return Health{Health: b.runner.Health(), Calls: b.calls.list()}
}

// calls makes the calls of the host, and knows those that run or fail.
type calls struct {
	mu      sync.Mutex
	methods map[string]*method
}

type method struct {
	running list.List // of time.Time, oldest first
	failing Call      // the part about failures
}

// make calls the host. A panic becomes an error. ctx is the context of the call.
func (c *calls) make(ctx context.Context, name string, call func() error) error {
	c.mu.Lock()
	m := c.methods[name]
	if m == nil {
		m = new(method)
		c.methods[name] = m
	}
	began := m.running.PushBack(time.Now())
	c.mu.Unlock()

	err := guard(call)

	c.mu.Lock()
	defer c.mu.Unlock()
	m.running.Remove(began)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled): // it was given up
	case err == nil, errors.Is(err, ErrIdle):
		m.failing = Call{}
	default:
		m.failing.FailedAt, m.failing.Err = time.Now(), err
		if m.failing.Failures++; m.failing.Failures == 1 {
			m.failing.FailingSince = m.failing.FailedAt
		}
	}
	return err
}

// judge calls a method that may refuse an operation, which is no failure.
func (c *calls) judge(ctx context.Context, name string, call func() error) error {
	var refusal error
	err := c.make(ctx, name, func() error { refusal = call(); return nil })
	return cmp.Or(err, refusal)
}

// mostHung is the number of calls of a method that may hang before no more are made.
const mostHung = 8

// await makes a call that may hang: when the time of its context is over, it is left alone, and can
// be made again. The error wraps ErrHangs then. A call whose context is canceled must end.
func await[T any](ctx context.Context, c *calls, name string, call func() (T, error)) (result T, err error) {
	if n := c.running(name); n >= mostHung {
		return result, fmt.Errorf("%w: have %d calls of %s that run, want fewer than %d", ErrHangs, n, name, mostHung)
	}
	type answer struct {
		result T
		err    error
	}
	ended := make(chan answer, 1)
	go func() {
		var a answer
		a.err = c.make(ctx, name, func() (err error) { a.result, err = call(); return err })
		ended <- a
	}()
	select {
	case a := <-ended:
		return a.result, a.err
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		a := <-ended
		return a.result, a.err
	}
	return result, fmt.Errorf("%w: %s: %w", ErrHangs, name, ctx.Err())
}

// running returns the number of calls of a method that have not returned.
func (c *calls) running(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.methods[name]; m != nil {
		return m.running.Len()
	}
	return 0
}

// list returns those that run or fail.
func (c *calls) list() (all []Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, m := range c.methods {
		call := m.failing
		call.Method, call.Running = name, m.running.Len()
		if oldest := m.running.Front(); oldest != nil {
			call.Since = oldest.Value.(time.Time)
		}
		if call.Running > 0 || call.Failures > 0 {
			all = append(all, call)
		}
	}
	slices.SortFunc(all, func(a, b Call) int { return cmp.Compare(a.Method, b.Method) })
	return all
}

// guard calls the host. A panic becomes an error.
func guard(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, p)
		}
	}()
	return call()
}
