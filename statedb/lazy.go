package statedb

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// lazyTree is the tree of a root, which is computed only when it is first read.
// After a restart this saves time, because a store keeps many roots and a host
// reads only a few of them. A lazyTree is safe for concurrent use.
type lazyTree struct {
	root common.Hash

	mu   sync.Mutex
	tree ubt.Tree
	// base and writes describe a tree that was not computed yet: the tree of base
	// after these writes. base is nil once the tree is computed.
	base   *lazyTree
	writes []ubt.Write
}

// ready returns the lazyTree of a tree that is already computed.
func ready(tree ubt.Tree) *lazyTree { return &lazyTree{root: tree.Root(), tree: tree} }

// get returns the tree, and computes it on the first call.
func (t *lazyTree) get() (ubt.Tree, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.base == nil {
		return t.tree, nil
	}
	// Go back to the nearest root whose tree exists, and apply all writes since then in one
	// step. The cost then depends on the number of different keys, and not on the number of
	// roots.
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

// peek returns the tree if it is computed, and otherwise its base and writes.
func (t *lazyTree) peek() (tree ubt.Tree, base *lazyTree, writes []ubt.Write) {
	// This waits while another goroutine computes the tree.
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tree, t.base, t.writes
}

// set stores a tree that a commit has computed, so that get need not.
func (t *lazyTree) set(tree ubt.Tree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tree, t.base, t.writes = tree, nil, nil
}

// merged combines sets of writes into one set with the same effect.
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
			// The first set is the newest, so its values win.
			if w := &writes[i]; !seen[w.Key] {
				seen[w.Key] = true
				all = append(all, *w)
			}
		}
	}
	slices.SortFunc(all, func(a, b ubt.Write) int { return a.Key.Compare(b.Key) })
	return all
}
