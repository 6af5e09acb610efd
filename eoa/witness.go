package eoa

import "sync"

// Witness remembers how far this process has seen each account go in the store.
// A store that is behind that has lost writes, for example because a replica
// was promoted that had not received them. The transactions of those writes may
// be on the chain, so the executor stops the account with ErrStoreRolledBack.
//
// All executors of a process should share one Witness; see [Config.Witness]. It
// takes about 100 bytes per account, and is safe for concurrent use. Create one
// with [NewWitness].
type Witness struct {
	mu   sync.Mutex
	seen map[Account]sight
}

// sight is a state of an account in the store: the number of times that it was
// resumed after a stop, and its versions. All of them only grow.
type sight struct{ resumes, version, wake uint64 }

// behind reports whether a store in state s has lost writes since it was in
// state before.
func (s sight) behind(before sight) bool {
	return s.resumes < before.resumes || s.resumes == before.resumes && (s.version < before.version || s.wake < before.wake)
}

// NewWitness returns a witness that has seen nothing.
func NewWitness() *Witness { return &Witness{seen: map[Account]sight{}} }

// see remembers a state that the store has returned. If the store was further
// before, see returns that state and false, and remembers nothing.
func (w *Witness) see(a Account, now sight) (before sight, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
