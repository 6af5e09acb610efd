package builder

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jamq/jamq/submit"
)

// Health is the condition of a builder: that of its runner, and the calls of the host.
type Health struct {
	submit.Health
	// Calls describes the methods of the host of which a call runs, or of which the last
	// call failed, sorted by name. A call that does not return, or that fails again and
	// again, holds up those that need it: see docs/embedding.md. Check, Admit, Payload,
	// Pack and Send hold up one operation or one package, the others the whole builder.
	Calls []Call
}

// Call describes the calls of one method of the host, except Follow.
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
	// is none, nor is a call whose context ended.
	Failures               int
	FailingSince, FailedAt time.Time
	Err                    error
}

// Stuck returns the call that needs an operator most: one that has run, or a method that has failed
// again and again, for at least the given time. It returns false if there is none.
func (h *Health) Stuck(after time.Duration) (call Call, found bool) {
	longest := after
	for _, c := range h.Calls {
		took := c.FailedAt.Sub(c.FailingSince)
		if c.Running > 0 {
			took = max(took, time.Since(c.Since))
		}
		if took >= longest {
			call, found, longest = c, true, took
		}
	}
	return call, found
}

// String describes the call for an operator.
func (c Call) String() string {
	text := c.Method
	if c.Running > 0 {
		text += fmt.Sprintf(" runs since %s", c.Since.UTC().Format(time.TimeOnly))
	}
	if c.Failures > 0 {
		text += fmt.Sprintf(" has failed %d times since %s: %v", c.Failures, c.FailingSince.UTC().Format(time.TimeOnly), c.Err)
	}
	return text
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

// make calls the host. A panic becomes an error.
func (c *calls) make(name string, call func() error) error {
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
	case errors.Is(err, context.Canceled): // it was given up
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
func (c *calls) judge(name string, call func() error) error {
	var refusal error
	err := c.make(name, func() error { refusal = call(); return nil })
	return cmp.Or(err, refusal)
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
