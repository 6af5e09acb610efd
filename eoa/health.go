package eoa

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq/eoa/internal/account"
)

// troubled holds the problems of an account, and when they were last reported.
type troubled struct {
	problems []Problem
	heard    time.Time
}

// Health returns the problems of the accounts that this fleet works on or tries to
// work on, the oldest first. An account without a problem is not in it. If an
// account could not be opened, or another worker holds it, the problem is dropped
// unless the fleet meets it again within Config.LeaseFor and two intervals,
// because another worker then does the work. Health does not read the store.
func (f *Fleet) Health() []Problem {
	now := f.cfg.Executor.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Problem
	for a, t := range f.troubled {
		_, opening := f.opening[a]
		elsewhere := f.running[a] == nil && !opening && a != (Account{})
		if elsewhere && now.Sub(t.heard) > f.cfg.Executor.LeaseFor+2*f.cfg.Interval {
			delete(f.troubled, a)
			continue
		}
		all = append(all, t.problems...)
	}
	for a, began := range f.opening {
		if wait := now.Sub(began); wait > f.cfg.Executor.Timeout {
			err := fmt.Errorf("eoa: opening %v: the opener has not returned for %v", a, wait)
			all = append(all, Problem{Account: a, Kind: ProblemOpener, Since: began, Err: err})
		}
	}
	slices.SortFunc(all, func(x, y Problem) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Account.ChainID, y.Account.ChainID),
			x.Account.Address.Cmp(y.Account.Address), cmp.Compare(x.Kind, y.Kind))
	})
	return all
}

// hear replaces the problems of an account.
func (f *Fleet) hear(a Account, found ...Problem) {
	now := f.cfg.Executor.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(found) == 0 {
		delete(f.troubled, a)
		return
	}
	f.troubled[a] = troubled{account.Continued(f.troubled[a].problems, slices.Clone(found), now), now}
}
