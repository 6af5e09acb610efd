package eoa

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// Witness remembers how far this process has seen each account go in the store.
// A store that lacks commits that were seen has lost writes, for example because
// a replica was promoted that had not received them. The transactions of those
// writes may be on the chain, so the executor stops the account with
// ErrStoreRolledBack.
//
// All executors of a process should share one Witness; see [Config.Witness]. It
// takes 100 to 500 bytes per account, and is safe for concurrent use. Create one
// with [NewWitness].
type Witness struct {
	id uint64 // random

	mu      sync.Mutex
	commits uint64 // number of the last commit, of all accounts
	seen    map[Account]sight
}

// maxMarks is the number of marks that a head keeps. The commits of a witness
// can be missed until this many others have committed after it.
const maxMarks = 16

// sight is a state of an account in the store: the number of times that it was
// resumed after a stop, its versions, and its marks.
type sight struct {
	resumes, version, wake uint64
	marks                  []Mark
}

// behind reports whether a store in state s has lost writes since it was in
// state before.
func (s sight) behind(before sight) bool {
	if s.resumes != before.resumes {
		return s.resumes < before.resumes
	}
	return s.version < before.version || s.wake < before.wake || slices.ContainsFunc(before.marks, s.lacks)
}

// lacks reports whether the commit of m is not in the history of s. If m may
// have been dropped because of maxMarks others after it, lacks returns false.
func (s sight) lacks(m Mark) bool {
	for _, k := range s.marks {
		if k.Witness == m.Witness {
			return k.Commit < m.Commit
		}
	}
	return len(s.marks) < maxMarks || s.marks[0].Version <= m.Version
}

// NewWitness returns a witness that has seen nothing.
func NewWitness() *Witness { return &Witness{id: rand.Uint64(), seen: map[Account]sight{}} }

// mark returns marks, which are in order of version, with a new one for the
// commit that leads to version.
func (w *Witness) mark(marks []Mark, version uint64) []Mark {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits++
	out := slices.DeleteFunc(slices.Clone(marks), func(m Mark) bool { return m.Witness == w.id })
	out = append(out, Mark{Witness: w.id, Commit: w.commits, Version: version})
	return out[max(0, len(out)-maxMarks):]
}

// see remembers a state that the store has returned. If the store lacks commits
// of an earlier state, see returns that state and false, and remembers nothing.
func (w *Witness) see(a Account, h *Head, wake uint64) (before sight, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.compare(a, sight{h.Resumes, h.Version, wake, h.Marks})
}

// seeHead is see for a state without its wake version.
func (w *Witness) seeHead(a Account, h *Head) (before sight, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.compare(a, sight{h.Resumes, h.Version, w.seen[a].wake, h.Marks})
}

// compare is see for a caller that holds the lock.
func (w *Witness) compare(a Account, now sight) (before sight, ok bool) {
	if before = w.seen[a]; now.behind(before) {
		return before, false
	}
	w.seen[a] = now
	return before, true
}

// last returns the furthest state that the store has returned so far.
func (w *Witness) last(a Account) sight {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[a]
}

// trust makes the witness accept the store as it is at the next time.
func (w *Witness) trust(a Account) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.seen, a)
}
