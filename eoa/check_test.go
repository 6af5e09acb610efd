package eoa

import (
	"fmt"
	"slices"

	"github.com/jamq/jamq/eoa/internal/account"
)

// Check returns an error that describes the first broken invariant of the account, as
// the executor holds it between two steps.
func (e *Executor) Check() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.view == nil {
		return nil
	}
	return check(e.view)
}

// check returns an error that describes the first broken invariant.
func check(v *account.View) error {
	for i := range v.Open {
		r := &v.Open[i]
		switch {
		case i > 0 && v.Open[i-1].Nonce >= r.Nonce:
			return fmt.Errorf("records %d and %d have nonces %d and %d", v.Open[i-1].ID, r.ID, v.Open[i-1].Nonce, r.Nonce)
		case r.Nonce >= v.Head.Next:
			return fmt.Errorf("record %d has nonce %d, the next is %d", r.ID, r.Nonce, v.Head.Next)
		case !r.Open():
			return fmt.Errorf("record %d is %v", r.ID, r.State)
		case r.Newest().Nonce != r.Nonce:
			return fmt.Errorf("record %d has nonce %d, its newest attempt %d", r.ID, r.Nonce, r.Newest().Nonce)
		}
	}
	for i, n := range v.Head.Gaps {
		if n >= v.Head.Next || slices.ContainsFunc(v.Open, func(r Record) bool { return r.Nonce == n }) || i > 0 && v.Head.Gaps[i-1] >= n {
			return fmt.Errorf("hole %d is held by a record, not below %d, or out of order", n, v.Head.Next)
		}
	}
	return nil
}
