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
	// commits is the number of commits that led to this root, without those
	// that Discard took back.
	commits uint64
	// codes are the hashes of the code that this root owns, in ascending order:
	// the code of its commits, and of its discarded ancestors.
	codes []common.Hash
	// base is the root that the write set on the disk starts from; it is
	// written with that set. Following bases leads to the root whose values are
	// on the disk, which is its own base, or to the empty root.
	base common.Hash
}

func (l link) equal(o link) bool {
	return l.commits == o.commits && l.base == o.base && slices.Equal(l.parents, o.parents) && slices.Equal(l.codes, o.codes)
}

// again returns the link of root after another commit, on parent and with code.
func (l link) again(root, parent common.Hash, code []common.Hash) link {
	l.commits++
	if parent != root && !slices.Contains(l.parents, parent) {
		l.parents = append(slices.Clone(l.parents), parent)
	}
	l.codes = union(l.codes, code)
	return l
}

// union returns the members of two ascending lists, each once.
func union(a, b []common.Hash) []common.Hash {
	if len(b) == 0 {
		return a
	}
	both := slices.Concat(a, b)
	slices.SortFunc(both, common.Hash.Cmp)
	return slices.Compact(both)
}

// retire returns the line of canonical roots for a new canonical root, cut to
// the retention. It also returns the roots to be discarded, marked as leaving.
// The caller holds both locks.
func (s *Store) retire(root common.Hash) (line, gone []common.Hash) {
	if s.cfg.Retention == KeepAll { // the line must not grow
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

// relink adds the links to a change that follow from its new flat root and from
// the deletion of the roots in left, and decides which code is kept for good.
// The empty root has no link. The error wraps ErrCorrupt.
func (s *Store) relink(c *change, left map[common.Hash]bool) (err error) {
	below := s.ancestors(c.canonical)
	for _, root := range c.gone {
		if below[root] {
			c.keep = union(c.keep, s.roots[root].codes)
		}
	}
	for root, p := range s.roots {
		// Relinking deleted roots too would walk the same chains repeatedly.
		if left[root] || root == EmptyRoot {
			continue
		}
		l := p.link
		if slices.ContainsFunc(l.parents, func(r common.Hash) bool { return left[r] }) {
			var passed []common.Hash
			l.parents, passed = s.surviving(root, left)
			for _, r := range passed {
				if !below[r] {
					l.codes = union(l.codes, s.roots[r].codes)
				}
			}
		}
		l.base = s.nextBase(root, c, left)
		if l.equal(p.link) {
			continue
		}
		c.links[root] = l
		if l.base != p.base && l.base != root && s.cfg.Disk != nil {
			if c.writes[root], err = s.lead(l.base, root); err != nil {
				return err
			}
		}
	}
	return nil
}

// nextBase returns the base of a root after the roots in left are deleted. A
// root whose bases are gone down to the flat root is below all that is kept, for
// example pinned. Its base becomes the canonical root, which stays the longest,
// so that its write set is seldom written again.
func (s *Store) nextBase(root common.Hash, c *change, left map[common.Hash]bool) common.Hash {
	switch root {
	case c.flat:
		return c.flat
	case s.flat:
		return c.canonical
	}
	base := s.roots[root].base
	for left[base] {
		if base == s.flat {
			return c.canonical
		}
		base = s.roots[base].base
	}
	return base
}

// surviving returns a root's parents, with each deleted parent replaced by its
// own surviving parents. It also returns the deleted roots that it passed.
func (s *Store) surviving(root common.Hash, left map[common.Hash]bool) (parents, passed []common.Hash) {
	seen := map[common.Hash]bool{root: true}
	var climb func(common.Hash)
	climb = func(r common.Hash) {
		for _, parent := range s.roots[r].parents {
			switch {
			case seen[parent]:
				continue
			case left[parent]:
				seen[parent] = true
				passed = append(passed, parent)
				climb(parent)
			default:
				seen[parent] = true
				parents = append(parents, parent)
			}
		}
	}
	climb(root)
	return parents, passed
}
