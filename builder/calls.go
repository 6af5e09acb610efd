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
)

// Call describes the calls of one method of the rollup, the network, the codec or the
// log, so that an operator sees which method hangs or fails. Network.Follow is a special
// case, because it runs all the time: Health.Calls contains it only while it fails, and
// only if the network has the method Health() submit.FeedHealth, as jip2net.Network has.
type Call struct {
	// Method is the method with its type, for example "Rollup.Apply". Methods of the optional
	// interfaces of a rollup, such as Final, have the type Rollup too. Encode and Decode of a
	// codec are described together as "Codec".
	Method string
	// Running is the number of calls that have not returned. It includes calls of Payload
	// and Pack that took longer than Config.BuildTimeout, although the builder no longer
	// waits for them. Since is when the oldest of these calls began, by the machine's
	// clock; it is zero if no call runs.
	Running int
	Since   time.Time
	// Failures counts the calls that have failed since the last success. The first of
	// these calls failed at FailingSince and the last one at FailedAt, both by the
	// machine's clock. Err is the error of the last one. All four are zero after a
	// success. Some errors do not count as failures:
	//
	//   - ErrIdle, which counts as a success
	//   - the error of Admit if it refuses an operation, unless Admit panicked
	//   - an error after the context of the call was canceled
	Failures               int
	FailingSince, FailedAt time.Time
	Err                    error
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

func byMethod(a, b Call) int { return cmp.Compare(a.Method, b.Method) }

// calls makes the calls to the host's code, and remembers which of them run or have
// failed, so that Health can name them. It is safe for concurrent use.
type calls struct {
	mu      sync.Mutex
	methods map[string]*method
}

type method struct {
	running list.List // when each running call began, a time.Time, oldest first
	failing Call      // only the fields about failures
}

// make calls a method of the host, and records for Health how the call went.
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
	case err != nil && errors.Is(ctx.Err(), context.Canceled): // not a failure of the host
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

// judge calls Admit and returns its error.
func (c *calls) judge(ctx context.Context, name string, call func() error) error {
	// An error of Admit is an answer to the user, not a failure of the host. It is therefore
	// kept apart, and only a panic counts as a failure.
	var refusal error
	err := c.make(ctx, name, func() error { refusal = call(); return nil })
	return cmp.Or(err, refusal)
}

// mostHung limits how many calls of one method may hang at the same time, because
// each of them occupies a goroutine and a payload, perhaps forever. When the limit
// is reached, await makes another call only if hungPause has passed since the last
// one began.
const (
	// mostHung limits how many calls of one method may hang at the same time, because
	// each of them occupies a goroutine and a payload, perhaps forever. After that,
	// await makes another call only if hungPause has passed since the last one began.
	mostHung  = 8
	hungPause = time.Hour
)

// await makes a call, and stops waiting for it at the deadline of ctx. The error then
// wraps ErrHangs.
func await[T any](ctx context.Context, c *calls, name string, call func() (T, error)) (result T, err error) {
	if n, last := c.running(name); n >= mostHung && time.Since(last) < hungPause {
		return result, fmt.Errorf("%w: %d calls of %s run; the next one is made %v after the last one, at %s", ErrHangs, n, name, hungPause, last.Add(hungPause).UTC().Format(time.RFC3339))
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
	// The builder stops. Wait for the call, so that it does not outlive Run.
	if errors.Is(ctx.Err(), context.Canceled) {
		a := <-ended
		return a.result, a.err
	}
	return result, fmt.Errorf("%w: %s: %w", ErrHangs, name, ctx.Err())
}

// running returns how many calls of a method run, and when the last one began.
func (c *calls) running(name string) (n int, last time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.methods[name]; m != nil && m.running.Len() > 0 {
		n, last = m.running.Len(), m.running.Back().Value.(time.Time)
	}
	return n, last
}

// list describes the methods that have a running call or whose last call failed.
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
	slices.SortFunc(all, byMethod)
	return all
}

// guard calls a function of the host, and turns a panic into an error.
func guard(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			// A bug of the host must not end the process.
			err = fmt.Errorf("%w: %v", ErrPanic, p)
		}
	}()
	return call()
}
