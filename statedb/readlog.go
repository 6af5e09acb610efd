package statedb

import (
	"github.com/google/btree"
)

// btreeDegree is google/btree's usual one.
const btreeDegree = 32

// sorted is an ordered set that is copied in constant time. It is made on the first insertion, because most views need none, and
// shares nothing with a copy that either would write to.
type sorted[T any] struct{ tree *btree.BTreeG[T] }

func (s *sorted[T]) copy() sorted[T] {
	if s.tree == nil {
		return sorted[T]{}
	}
	return sorted[T]{s.tree.Clone()}
}

func (s *sorted[T]) put(item T, less func(a, b T) bool) {
	if s.tree == nil {
		s.tree = btree.NewG(btreeDegree, less)
	}
	s.tree.ReplaceOrInsert(item)
}

func (s *sorted[T]) get(item T) (found T, ok bool) {
	if s.tree == nil {
		return found, false
	}
	return s.tree.Get(item)
}

func (s *sorted[T]) len() int {
	if s.tree == nil {
		return 0
	}
	return s.tree.Len()
}

func (s *sorted[T]) all(yield func(T) bool) {
	if s.tree != nil {
		s.tree.Ascend(yield)
	}
}

// logged is a read with its place in the order of first reads.
type logged struct {
	Read
	seq int
}

func loggedLess(a, b logged) bool { return a.Key.Compare(b.Key) < 0 }

// readLog keeps each key that was read once.
type readLog struct{ byKey sorted[logged] }

func (r *readLog) copy() readLog { return readLog{r.byKey.copy()} }

func (r *readLog) add(a Access, transaction int) {
	entry := logged{Read: Read{a, transaction}, seq: r.byKey.len()}
	if _, known := r.byKey.get(entry); !known {
		r.byKey.put(entry, loggedLess)
	}
}

// list returns the reads in the order of first access.
func (r *readLog) list() []Read {
	out := make([]Read, r.byKey.len())
	for l := range r.byKey.all {
		out[l.seq] = l.Read
	}
	return out
}
