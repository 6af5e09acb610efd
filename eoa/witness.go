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

// maxMarks is how many marks the head of an account has at most. Each process that commits
// to the account leaves a mark for its last commit there, and later checks by it whether
// the store still has that commit. If more processes than this work on the account, the
// oldest mark is dropped, and its process can no longer check.
const maxMarks = 16

// storeState is the part of an account's stored state by which a process notices later
// that the store has lost writes: one of the counts is then lower, or the mark of a commit
// is missing. resumes counts how often an operator has resumed the account.
type storeState struct {
	resumes, version, wake uint64
	marks                  []account.Mark
}

// behind reports whether a store in state s lacks writes that before includes.
func (s storeState) behind(before storeState) bool {
	// An operator who resumes the account accepts what the store has lost.
	if s.resumes != before.resumes {
		return s.resumes < before.resumes
	}
	return s.version < before.version || s.wake < before.wake || slices.ContainsFunc(before.marks, s.lacks)
}

// lacks reports whether the store has lost the commit that m names.
func (s storeState) lacks(m account.Mark) bool {
	for _, k := range s.marks {
		if k.Witness == m.Witness {
			return k.Commit < m.Commit
		}
	}
	// The store has no mark of this process. This is no evidence of lost writes if the list is
	// full of newer marks, because these may have pushed the mark out.
	return len(s.marks) < maxMarks || s.marks[0].Version <= m.Version
}

// NewWitness returns a witness that has seen nothing yet.
func NewWitness() *Witness { return &Witness{id: rand.Uint64(), seen: map[Account]storeState{}} }

// mark adds a mark of this process to the list that the next commit stores. version is the
// version of the account after that commit.
func (w *Witness) mark(marks []account.Mark, version uint64) []account.Mark {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
	// Each process has one mark in the list, so the new mark replaces its earlier one. If the
	// list is full, the oldest mark is dropped.
	out := slices.DeleteFunc(slices.Clone(marks), func(m account.Mark) bool { return m.Witness == w.id })
	out = append(out, account.Mark{Witness: w.id, Commit: w.commits, Version: version})
	return out[max(0, len(out)-maxMarks):]
}

// remember notes the state that the store has just returned, unless writes are
// missing.
func (w *Witness) remember(a Account, h *account.Head, wake *uint64) (before storeState, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before = w.seen[a]
	now := storeState{h.Resumes, h.Version, before.wake, h.Marks}
	if wake != nil {
		now.wake = *wake
	}
	if now.behind(before) {
		// The store lacks commits of the earlier state, so keep that state.
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

// forget lets the witness accept whatever state the store returns next.
func (w *Witness) forget(a Account) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// The account was stopped because of lost writes.
	delete(w.seen, a)
}
