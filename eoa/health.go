package eoa

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq/eoa/internal/account"
)

// troubled contains the last reported problems of an account.
type troubled struct {
	problems   []Problem
	reportedAt time.Time
}

// Health returns the problems of the accounts that this fleet works on or tries to
// work on, the oldest first. Accounts without problems are not listed. Health does
// not read the store.
//
// If another worker holds an account, or this fleet could not open the account,
// another process may do the work. Health therefore drops the problem if the fleet
// has not met it again within Config.LeaseFor plus two intervals.
func (f *Fleet) Health() []Problem {
	now := f.cfg.Executor.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Problem
	for a, t := range f.troubled {
		_, opening := f.opening[a]
		elsewhere := f.running[a] == nil && !opening && a != (Account{})
		if elsewhere && now.Sub(t.reportedAt) > f.cfg.Executor.LeaseFor+2*f.cfg.Interval {
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

// setProblems replaces the problems of an account by those that were found now.
func (f *Fleet) setProblems(a Account, found ...Problem) {
	now := f.cfg.Executor.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(found) == 0 {
		delete(f.troubled, a)
		return
	}
	f.troubled[a] = troubled{account.Continued(f.troubled[a].problems, slices.Clone(found), now), now}
}
