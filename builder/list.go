package builder

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// List keeps the operations of a rollup that wait, in the order in which they were
// admitted. A rollup embeds a List to get the methods of [Operations], and calls
// the other methods of List in its own methods:
//
//	Propose       Waiting, and Drop for operations that can never run
//	Apply, Undo   Executed and Returned, with the operations of the block
//	Checkpoint    Records; Restore gives each of these to ReplayChange
//
// A List does not know which operations were executed, so the rollup must have its
// own Admit. That method refuses or ignores an operation that was executed, which
// it can recognize by a nonce, for example, and passes other operations to
// List.Admit. Meanwhile it must hold a lock that Apply and Undo hold too.
//
// The zero value is an empty list. All methods are safe for concurrent use. A List
// keeps the slices that it gets and returns the same slices, so the rollup must not
// change their bytes.
type List struct {
	mu      sync.Mutex
	waiting [][]byte
	known   map[string]struct{} // the operations in waiting
	changes [][]byte            // since the last call of TakeChanges
}

// The first byte of a change is its kind; the operation follows.
const (
	changeAdmitted = 'A'
	changeDropped  = 'D'
)

// Admit adds an operation at the end of the list, unless the list already has it. It always returns
// nil.
func (l *List) Admit(_ context.Context, op []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.add(op) {
		l.changes = append(l.changes, change(changeAdmitted, op))
	}
	return nil
}

// Drop removes an operation for good, also after a restart. It is meant for
// operations that can never run, whatever blocks fail. Drop does nothing if the
// operation is not in the list.
func (l *List) Drop(op []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.has(op) {
		l.remove(op)
		l.changes = append(l.changes, change(changeDropped, op))
	}
}

// Waiting returns the operations that wait. The operation that has waited longest
// comes first.
func (l *List) Waiting() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.waiting)
}

// Executed removes the operations of a block that the rollup applies.
func (l *List) Executed(ops ...[]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(ops...)
}

// Returned puts the operations of a block that the rollup undoes back into the list, in their order
// and before all others.
func (l *List) Returned(ops ...[]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	others := l.waiting
	l.waiting, l.known = nil, nil
	for _, op := range slices.Concat(ops, others) {
		l.add(op)
	}
}

// Records returns the operations in the list as records for a checkpoint. After a
// restart, ReplayChange reads these records.
func (l *List) Records() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([][]byte, len(l.waiting))
	for i, op := range l.waiting {
		all[i] = change(changeAdmitted, op)
	}
	return all
}

// TakeChanges implements [Operations].
func (l *List) TakeChanges() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	changes := l.changes
	l.changes = nil
	return changes
}

// ReplayChange implements [Operations]: it repeats a change that TakeChanges has returned. The
// error wraps ErrCorrupt if change is not a change of a List.
func (l *List) ReplayChange(_ context.Context, change []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(change) == 0 {
		return fmt.Errorf("%w: an empty change of a list", ErrCorrupt)
	}
	switch kind, op := change[0], change[1:]; kind {
	case changeAdmitted:
		l.add(op)
	case changeDropped:
		l.remove(op)
	default:
		return fmt.Errorf("%w: a change of kind %q in a list", ErrCorrupt, kind)
	}
	return nil
}

// Recovered implements [Operations]. It does nothing, because a List gets all operations by Submit.
func (l *List) Recovered(context.Context, func() error) error { return nil }

// add adds an operation and reports whether it was missing. The caller holds l.mu.
func (l *List) add(op []byte) bool {
	if l.has(op) {
		return false
	}
	if l.known == nil {
		l.known = make(map[string]struct{})
	}
	l.known[string(op)] = struct{}{}
	l.waiting = append(l.waiting, op)
	return true
}

// remove removes those operations that wait. The caller holds l.mu.
func (l *List) remove(ops ...[]byte) {
	for _, op := range ops {
		delete(l.known, string(op))
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(op []byte) bool { return !l.has(op) })
}

// has reports whether an operation waits. The caller holds l.mu.
func (l *List) has(op []byte) bool {
	_, waits := l.known[string(op)]
	return waits
}

func change(kind byte, op []byte) []byte { return slices.Concat([]byte{kind}, op) }
