package eoa

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/jamq/jamq/eoa/internal/account"
)

// Witness detects that a store has lost writes, for example because a replica was
// promoted that had not received them. For each account, it remembers the latest
// state that this process has seen. If the store later lacks commits of that state,
// their transactions may be on the chain. The executor then stops the account with
// ErrStoreRolledBack, because going on could execute requests twice.
//
// All executors of a process should share a Witness; see [Config.Witness]. A
// Witness needs 100 to 500 bytes per account and is safe for concurrent use. Create
// it with [NewWitness].
type Witness struct {
	id uint64 // random

	mu      sync.Mutex
	commits uint64 // number of the last commit, counted over all accounts
	seen    map[Account]storeState
}

// maxMarks is how many marks a head keeps, one for each process that has committed.
// A process can check whether its own commits are still in the store unless this
// many other processes have committed since.
const maxMarks = 16

// storeState is the part of an account's stored state that reveals lost writes: how
// often the account was resumed after a stop, its versions, and its marks.
type storeState struct {
	resumes, version, wake uint64
	marks                  []account.Mark
}

// behind reports whether a store in state s lacks writes that it had in the earlier
// state before.
func (s storeState) behind(before storeState) bool {
	if s.resumes != before.resumes {
		return s.resumes < before.resumes
	}
	return s.version < before.version || s.wake < before.wake || slices.ContainsFunc(before.marks, s.lacks)
}

// lacks reports whether the commit that m names is missing in s. A store keeps only
// the newest maxMarks marks. If m may have been dropped for that reason, nothing
// is proved, and lacks returns false.
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

// mark adds a mark for the commit that leads to version, and returns the marks to
// store. marks must be in the order of their versions.
func (w *Witness) mark(marks []account.Mark, version uint64) []account.Mark {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
	out := slices.DeleteFunc(slices.Clone(marks), func(m account.Mark) bool { return m.Witness == w.id })
	out = append(out, account.Mark{Witness: w.id, Commit: w.commits, Version: version})
	return out[max(0, len(out)-maxMarks):]
}

// remember stores the state of an account that the store has returned; wake is nil
// if the store did not return the wake version. If the store lacks commits of the
// state remembered before, remember keeps that state, and returns it and false.
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

// last returns the latest state of the account that was remembered.
func (w *Witness) last(a Account) storeState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[a]
}

// forget drops the remembered state, so that the witness accepts the next state
// that the store returns. It is called after the account was stopped because of
// lost writes.
func (w *Witness) forget(a Account) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.seen, a)
}
