package statedb

import (
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/btree"
)

// btreeDegree is the degree that google/btree suggests.
const btreeDegree = 32

// sorted is an ordered set that can be copied in constant time and without
// allocation. Views are copied often and most of them write nothing, so a set
// creates its tree only at the first insertion.
type sorted[T any] struct {
	own  *btree.BTreeG[T] // tree that only this set uses; nil if there is none
	base *shared[T]       // tree that is shared with copies; nil if there is none
}

// shared is a tree that several sets use together and that none of them changes. A set
// that must change it clones it first. Only cloning needs a lock, because readers do not
// notice it.
type shared[T any] struct {
	cloning sync.Mutex
	tree    *btree.BTreeG[T]
}

func (s *sorted[T]) copy() sorted[T] {
	if s.own != nil {
		s.own, s.base = nil, &shared[T]{tree: s.own}
	}
	return *s
}

// tree returns the tree of the set for reading, or nil without items.
func (s *sorted[T]) tree() *btree.BTreeG[T] {
	if s.own == nil && s.base != nil {
		return s.base.tree
	}
	return s.own
}

// claim clones a shared tree, so that the set may write to it.
func (s *sorted[T]) claim(less func(a, b T) bool) {
	switch {
	case s.own != nil:
	case s.base == nil:
		s.own = btree.NewG(btreeDegree, less)
	default:
		s.base.cloning.Lock()
		s.own = s.base.tree.Clone()
		s.base.cloning.Unlock()
		s.base = nil
	}
}

func (s *sorted[T]) put(item T, less func(a, b T) bool) {
	s.claim(less)
	s.own.ReplaceOrInsert(item)
}

func (s *sorted[T]) remove(item T, less func(a, b T) bool) {
	s.claim(less)
	s.own.Delete(item)
}

func (s *sorted[T]) get(item T) (found T, ok bool) {
	if t := s.tree(); t != nil {
		return t.Get(item)
	}
	return found, false
}

func (s *sorted[T]) len() int {
	if t := s.tree(); t != nil {
		return t.Len()
	}
	return 0
}

func (s *sorted[T]) all(yield func(T) bool) {
	if t := s.tree(); t != nil {
		t.Ascend(yield)
	}
}

// logged is an item in the log of reads. seq numbers the items in the order of
// their first reads, from 0.
type logged[T any] struct {
	what T
	seq  int
	// named is not 0 if the key was first read as a raw key, and a later read showed what it
	// is, for example a storage slot of an account. named numbers these later reads from 1, so
	// that rewind, which goes back to an earlier position of the log, can undo the newest of
	// them.
	named int
}

func readLess(a, b logged[Read]) bool        { return a.what.Key.Compare(b.what.Key) < 0 }
func codeLess(a, b logged[common.Hash]) bool { return a.what.Cmp(b.what) < 0 }

// readLog contains each key and each code that an execution has read. View.Witness
// proves its contents.
type readLog struct {
	byKey sorted[logged[Read]]
	code  sorted[logged[common.Hash]]
	// named counts how often a key that was first read as a raw key was read again as a part
	// of an account, for example as a storage slot. With this count, rewind knows which of
	// these second reads to undo; see logged.named.
	named int
}

func (r *readLog) copy() readLog { return readLog{r.byKey.copy(), r.code.copy(), r.named} }

// add logs that a key was read.
func (r *readLog) add(a Access, transaction int) {
	entry := logged[Read]{what: Read{a, transaction}, seq: r.byKey.len()}
	before, known := r.byKey.get(entry)
	switch {
	case !known:
		r.byKey.put(entry, readLess)
	case before.what.Kind == RawAccess && a.Kind != RawAccess:
		// The key was read before, but only as a raw key. This read shows which account and
		// slot it belongs to, so store that too.
		r.named++
		before.what.Access, before.named = a, r.named
		r.byKey.put(before, readLess)
	}
}

func (r *readLog) addCode(h common.Hash) {
	entry := logged[common.Hash]{what: h, seq: r.code.len()}
	if _, known := r.code.get(entry); !known {
		r.code.put(entry, codeLess)
	}
}

func (r *readLog) hasCode(h common.Hash) bool {
	_, known := r.code.get(logged[common.Hash]{what: h})
	return known
}

// list returns the reads in the order in which the keys were first read.
func (r *readLog) list() []Read {
	out := make([]Read, r.byKey.len())
	for l := range r.byKey.all {
		out[l.seq] = l.what
	}
	return out
}

// ReadMark is a position in a view's log of reads. View.Mark returns the present
// position, and View.Rewind returns the log to a mark.
type ReadMark struct{ keys, codes, named int }

func (r *readLog) mark() ReadMark { return ReadMark{r.byKey.len(), r.code.len(), r.named} }

// rewind removes the reads after the mark m.
func (r *readLog) rewind(m ReadMark) {
	cut(&r.byKey, m.keys, readLess)
	cut(&r.code, m.codes, codeLess)
	if r.named <= m.named {
		return
	}
	var late []logged[Read]
	for l := range r.byKey.all {
		// Before the mark, only the raw key had been read. The account and the slot became
		// known later, so they are removed again.
		if l.named > m.named {
			late = append(late, l)
		}
	}
	for _, l := range late {
		l.what.Access, l.named = Access{Kind: RawAccess, Key: l.what.Key}, 0
		r.byKey.put(l, readLess)
	}
	r.named = m.named
}

// cut removes all items of a set except the n that were read first.
func cut[T any](s *sorted[logged[T]], n int, less func(a, b logged[T]) bool) {
	if s.len() <= n {
		return
	}
	var late []logged[T]
	for l := range s.all {
		if l.seq >= n {
			late = append(late, l)
		}
	}
	s.claim(less)
	for _, l := range late {
		s.own.Delete(l)
	}
}
