package statedb

import (
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// link says where a root hangs. Links are followed for retention, by parent, and for the disk, by base.
type link struct {
	// parent is the root that it was committed on, or the nearest ancestor that is not discarded.
	parent common.Hash
	// base is the root from which the disk's write set leads here. Following bases ends at the canonical root, whose base is itself,
	// or at the empty one.
	base common.Hash
}

// retire returns the line of canonical roots once root is canonical, as far as retention keeps it, and marks and returns what is to be
// discarded. It is called under both locks.
func (s *Store) retire(root common.Hash) (line, gone []common.Hash) {
	line = append(slices.DeleteFunc(slices.Clone(s.line), func(r common.Hash) bool { return r == root }), root)
	if s.cfg.Retention == 0 || len(line) <= s.cfg.Retention+1 {
		return line, nil
	}
	line = line[len(line)-s.cfg.Retention-1:]
	stays := s.descendants(line[0])
	maps.Copy(stays, s.descendants(s.oldestAncestor(root, line))) // another one after a reorganisation
	for _, r := range line {
		stays[r] = true
	}
	for r, p := range s.roots {
		if !stays[r] && !p.inUse() && r != EmptyRoot {
			p.leaving = true
			gone = append(gone, r)
		}
	}
	slices.SortFunc(gone, common.Hash.Cmp)
	return line, gone
}

// oldestAncestor returns the oldest of a line's roots that a root descends from, or the root itself.
func (s *Store) oldestAncestor(root common.Hash, line []common.Hash) common.Hash {
	oldest := root
	for r := root; r != EmptyRoot; {
		p := s.roots[r]
		if p == nil {
			break
		}
		if slices.Contains(line, r) {
			oldest = r
		}
		r = p.parent
	}
	return oldest
}

// descendants returns a root and all that descend from it.
func (s *Store) descendants(root common.Hash) map[common.Hash]bool {
	children := make(map[common.Hash][]common.Hash, len(s.roots))
	for r, p := range s.roots {
		children[p.parent] = append(children[p.parent], r)
	}
	found := map[common.Hash]bool{root: true}
	for todo := []common.Hash{root}; len(todo) > 0; {
		next := children[todo[0]]
		todo = todo[1:]
		for _, r := range next {
			if !found[r] {
				found[r] = true
				todo = append(todo, r)
			}
		}
	}
	return found
}

// relink returns the links that are different once a root is canonical and others are gone. The empty root has none.
func (s *Store) relink(canonical common.Hash, gone []common.Hash) map[common.Hash]link {
	links := make(map[common.Hash]link, len(s.roots))
	for root, p := range s.roots {
		links[root] = p.link
	}
	rebase := func(root, base common.Hash) {
		l := links[root]
		l.base = base
		links[root] = l
	}
	rebase(s.canonical, canonical)
	rebase(canonical, canonical)
	left := make(map[common.Hash]bool, len(gone))
	for _, root := range gone {
		left[root] = true
	}
	after := maps.Clone(links)
	for root, l := range links {
		for left[l.base] {
			l.base = links[l.base].base
		}
		for left[l.parent] {
			l.parent = links[l.parent].parent
		}
		if after[root] = l; left[root] || root == EmptyRoot || l == s.roots[root].link {
			delete(after, root)
		}
	}
	return after
}
