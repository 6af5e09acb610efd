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

// Call describes the calls of one method of the host: of rollup, network, codec and log.
// Network.Follow, which always runs, is among them only while it fails, and only for a network
// with the method Health() submit.FeedHealth, as jip2net.Network has.
type Call struct {
	// Method is the method with its type, for example "Rollup.Apply". Methods of the optional
	// interfaces of a rollup, such as Final, have the type Rollup too.
	Method string
	// Running is the number of calls that have not returned, including calls of Payload and
	// Pack that were left alone. The oldest of them began at Since, by the machine's clock;
	// Since is zero if no call runs.
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

// calls makes all calls of the host, so that Health can name those that run or fail. It is safe
// for concurrent use.
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

// mostHung is the number of calls of a method that may hang before more are made only once in
// hungPause, because each holds a goroutine and a payload forever.
const (
	mostHung  = 8
	hungPause = time.Hour
)

// await makes a call that can be repeated while an earlier one hangs. If the call has not returned
// at the deadline of ctx, await leaves it alone and returns an error that wraps ErrHangs. If ctx is
// canceled, because the builder stops, await waits until the call returns.
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
	if errors.Is(ctx.Err(), context.Canceled) {
		a := <-ended
		return a.result, a.err
	}
	return result, fmt.Errorf("%w: %s: %w", ErrHangs, name, ctx.Err())
}

// running returns the number of calls of a method that have not returned, and when the last of
// them began.
func (c *calls) running(name string) (n int, last time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.methods[name]; m != nil && m.running.Len() > 0 {
		n, last = m.running.Len(), m.running.Back().Value.(time.Time)
	}
	return n, last
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
	slices.SortFunc(all, byMethod)
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
