package statedb

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// lazyTree is the tree of a root. After a restart it is derived when it is first
// read, because a store keeps many roots and a host reads few of them. It is
// safe for concurrent use.
type lazyTree struct {
	root common.Hash

	mu   sync.Mutex
	tree ubt.Tree
	// base and writes lead to the tree, and base is nil when the tree is there.
	// A base can be read here after its root was discarded.
	base   *lazyTree
	writes []ubt.Write
}

// ready returns a tree that needs no derivation.
func ready(tree ubt.Tree) *lazyTree { return &lazyTree{root: tree.Root(), tree: tree} }

// get returns the tree. The writes since the nearest base that has a tree are
// applied at once, so the cost depends on the number of different keys and not
// on that of roots between. The error wraps ErrCorrupt.
func (t *lazyTree) get() (ubt.Tree, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.base == nil {
		return t.tree, nil
	}
	sets := [][]ubt.Write{t.writes}
	tree, base, writes := t.base.peek()
	for base != nil {
		sets = append(sets, writes)
		tree, base, writes = base.peek()
	}
	tree, err := tree.Apply(&hasher, merged(sets))
	if err != nil || tree.Root() != t.root {
		return ubt.Tree{}, fmt.Errorf("%w: root %s: the writes lead to %s: %v", ErrCorrupt, t.root, tree.Root(), err)
	}
	t.tree, t.base, t.writes = tree, nil, nil
	return tree, nil
}

// peek returns the tree, or the base and the writes that lead to it. It waits
// for a derivation that another goroutine has begun.
func (t *lazyTree) peek() (tree ubt.Tree, base *lazyTree, writes []ubt.Write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tree, t.base, t.writes
}

// set makes the derivation unnecessary, because a commit has led to the tree.
func (t *lazyTree) set(tree ubt.Tree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tree, t.base, t.writes = tree, nil, nil
}

// merged returns one set of writes for several, of which the first is the newest.
func merged(sets [][]ubt.Write) []ubt.Write {
	if len(sets) == 1 {
		return sets[0]
	}
	most := 0
	for _, writes := range sets {
		most += len(writes)
	}
	all, seen := make([]ubt.Write, 0, most), make(map[Key]bool, most)
	for _, writes := range sets {
		for i := range writes {
			if w := &writes[i]; !seen[w.Key] {
				seen[w.Key] = true
				all = append(all, *w)
			}
		}
	}
	slices.SortFunc(all, func(a, b ubt.Write) int { return a.Key.Compare(b.Key) })
	return all
}
