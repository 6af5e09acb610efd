package statedb

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// link is the position of a root among the others. Retention follows parents,
// and the disk follows bases.
type link struct {
	// parents are the distinct roots this root was committed on, in order. When
	// a parent is discarded, it is replaced by its own parents. Following the
	// first parents leads to the empty root, which has none.
	parents []common.Hash
	// base is the root that the write set on the disk starts from. Following
	// bases leads to the canonical root, which is its own base, or to the empty
	// root.
	base common.Hash
}

func (l link) equal(o link) bool { return l.base == o.base && slices.Equal(l.parents, o.parents) }

// with returns the link with another parent, if it is not there yet.
func (l link) with(root, parent common.Hash) link {
	if root != EmptyRoot && parent != root && !slices.Contains(l.parents, parent) {
		l.parents = append(slices.Clone(l.parents), parent)
	}
	return l
}

// retire returns the line of canonical roots for a new canonical root, cut to
// the retention. It also returns the roots to be discarded, marked as leaving.
// The caller holds both locks.
func (s *Store) retire(root common.Hash) (line, gone []common.Hash) {
	if s.cfg.Retention == 0 { // the line must not grow
		return []common.Hash{root}, nil
	}
	line = append(slices.DeleteFunc(slices.Clone(s.line), func(r common.Hash) bool { return r == root }), root)
	if len(line) <= s.cfg.Retention+1 {
		return line, nil
	}
	line = line[len(line)-s.cfg.Retention-1:]
	above := s.ancestors(root)
	// After a reorganization more roots than the oldest one may be off the new
	// branch.
	stays := s.descendants(slices.DeleteFunc(slices.Clone(line), func(r common.Hash) bool { return r != line[0] && !above[r] }))
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

// ancestors returns a root and everything that it descends from.
func (s *Store) ancestors(root common.Hash) map[common.Hash]bool {
	return reach([]common.Hash{root}, func(r common.Hash) []common.Hash { return s.roots[r].parents })
}

// descendants returns roots and everything that descends from them.
func (s *Store) descendants(roots []common.Hash) map[common.Hash]bool {
	children := make(map[common.Hash][]common.Hash, len(s.roots))
	for r, p := range s.roots {
		for _, parent := range p.parents {
			children[parent] = append(children[parent], r)
		}
	}
	return reach(roots, func(r common.Hash) []common.Hash { return children[r] })
}

// reach returns roots and everything that is reachable from them.
func reach(roots []common.Hash, next func(common.Hash) []common.Hash) map[common.Hash]bool {
	found := map[common.Hash]bool{}
	for todo := slices.Clone(roots); len(todo) > 0; {
		r := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; !found[r] {
			found[r] = true
			todo = append(todo, next(r)...)
		}
	}
	return found
}

// relink returns the links that change when canonical becomes canonical and the
// roots in gone are deleted. The empty root has no link. If gone is empty,
// relink inspects only two roots.
func (s *Store) relink(canonical common.Hash, gone []common.Hash) map[common.Hash]link {
	left := make(map[common.Hash]bool, len(gone))
	for _, root := range gone {
		left[root] = true
	}
	base := func(root common.Hash) common.Hash {
		if root == canonical || root == s.canonical {
			return canonical
		}
		return s.roots[root].base
	}
	links := make(map[common.Hash]link)
	consider := func(root common.Hash) {
		// Relinking deleted roots too would walk the same chains
		// repeatedly.
		if left[root] || root == EmptyRoot {
			return
		}
		l := link{s.roots[root].parents, base(root)}
		for left[l.base] {
			l.base = base(l.base)
		}
		if slices.ContainsFunc(l.parents, func(r common.Hash) bool { return left[r] }) {
			l.parents = s.surviving(root, left)
		}
		if !l.equal(s.roots[root].link) {
			links[root] = l
		}
	}
	if len(gone) == 0 {
		consider(s.canonical)
		consider(canonical)
		return links
	}
	for root := range s.roots {
		consider(root)
	}
	return links
}

// surviving returns a root's parents, with each deleted parent replaced by its
// own surviving parents.
func (s *Store) surviving(root common.Hash, left map[common.Hash]bool) (parents []common.Hash) {
	seen := map[common.Hash]bool{root: true}
	var climb func(common.Hash)
	climb = func(r common.Hash) {
		for _, parent := range s.roots[r].parents {
			switch {
			case seen[parent]:
				continue
			case left[parent]:
				seen[parent] = true
				climb(parent)
			default:
				seen[parent] = true
				parents = append(parents, parent)
			}
		}
	}
	climb(root)
	return parents
}
