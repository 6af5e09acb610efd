package eoa

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/jamq/jamq/eoa/internal/account"
)

// Witness protects against a store that loses writes, for example because a replica was
// promoted that had not received them. It remembers for each account how far this process has
// seen it go. If the store later lacks commits that were seen, transactions of these commits
// may be on the chain. The executor then stops the account with ErrStoreRolledBack, because
// going on could execute requests twice.
//
// All executors of a process should share one Witness; see [Config.Witness]. It needs 100 to
// 500 bytes per account, and is safe for concurrent use. Create one with [NewWitness].
type Witness struct {
	id uint64 // random

	mu      sync.Mutex
	commits uint64 // number of the last commit, of all accounts
	seen    map[Account]storeState
}

// maxMarks is how many marks a head keeps, one for each process that has committed. As long
// as fewer other processes have committed since, a process finds out whether its own commits
// are still there.
const maxMarks = 16

// storeState is the state of an account in the store, as far as it shows lost writes: how
// often the account was resumed after a stop, its versions, and its marks.
type storeState struct {
	resumes, version, wake uint64
	marks                  []account.Mark
}

// behind reports whether a store in state s lacks writes that it had in the state before.
func (s storeState) behind(before storeState) bool {
	if s.resumes != before.resumes {
		return s.resumes < before.resumes
	}
	return s.version < before.version || s.wake < before.wake || slices.ContainsFunc(before.marks, s.lacks)
}

// lacks reports whether the commit that m names is missing in s. If m may have been pushed
// out by maxMarks newer ones, lacks returns false.
func (s storeState) lacks(m account.Mark) bool {
	for _, k := range s.marks {
		if k.Witness == m.Witness {
			return k.Commit < m.Commit
		}
	}
	return len(s.marks) < maxMarks || s.marks[0].Version <= m.Version
}

// NewWitness returns a witness that has seen nothing yet.
func NewWitness() *Witness { return &Witness{id: rand.Uint64(), seen: map[Account]storeState{}} }

// mark returns marks with a new one, for the commit that leads to version. marks are in order
// of their versions.
func (w *Witness) mark(marks []account.Mark, version uint64) []account.Mark {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
	out := slices.DeleteFunc(slices.Clone(marks), func(m account.Mark) bool { return m.Witness == w.id })
	out = append(out, account.Mark{Witness: w.id, Commit: w.commits, Version: version})
	return out[max(0, len(out)-maxMarks):]
}

// remember keeps the state of an account that the store has returned. wake is nil if the
// store did not return the wake version. If the store lacks commits of the state that was
// kept before, remember returns that state and false, and keeps it.
func (w *Witness) remember(a Account, h *account.Head, wake *uint64) (before storeState, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before = w.seen[a]
	now := storeState{h.Resumes, h.Version, before.wake, h.Marks}
	if wake != nil {
		now.wake = *wake
	}
	if now.behind(before) {
		return before, false
	}
	w.seen[a] = now
	return before, true
}

// last returns the furthest state of the account that the store has returned.
func (w *Witness) last(a Account) storeState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[a]
}

// forget makes the witness accept whatever state the store returns next, after the account
// was stopped for the loss.
func (w *Witness) forget(a Account) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.seen, a)
}
