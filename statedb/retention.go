package statedb

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// link describes how a root is related to other roots. The parents decide which
// roots retention deletes. The base is needed to derive the root's tree from the
// disk.
type link struct {
	// parents are the roots on which this root was committed, each once, in the order of the
	// commits. There are several if different blocks lead to the same state. When a parent is
	// discarded, its own parents take its place. Following the first parents always leads to
	// the empty root.
	parents []common.Hash
	// commits is the number of commits that led to this root, minus those that
	// Discard took back.
	commits uint64
	// codes are the hashes of the code that this root owns, ascending. A root owns
	// the code that its commits have set, and inherits the code of discarded
	// ancestors.
	codes []common.Hash
	// base is the root on which the disk stores this root: the tree of base, after
	// the write set on the disk, is the tree of this root. The flat root is its own
	// base, because its values are stored completely.
	base common.Hash
}

func (l link) equal(o link) bool {
	return l.commits == o.commits && l.base == o.base && slices.Equal(l.parents, o.parents) && slices.Equal(l.codes, o.codes)
}

// again returns the link of a root that was committed once more, on parent.
func (l link) again(root, parent common.Hash, code []common.Hash) link {
	l.commits++
	if parent != root && !slices.Contains(l.parents, parent) {
		l.parents = append(slices.Clone(l.parents), parent)
	}
	l.codes = union(l.codes, code)
	return l
}

// union merges two ascending lists into one, without duplicates.
func union(a, b []common.Hash) []common.Hash {
	if len(b) == 0 {
		return a
	}
	both := slices.Concat(a, b)
	slices.SortFunc(both, common.Hash.Cmp)
	return slices.Compact(both)
}

// retire decides which roots retention keeps after root has become canonical.
func (s *Store) retire(root common.Hash) (line, gone []common.Hash) {
	if s.cfg.Retention == KeepAll { // the line must not grow
		return []common.Hash{root}, nil
	}
	// The caller holds both locks of the store. The result line has the canonical roots that
	// stay, and gone has the roots to discard.
	line = append(slices.DeleteFunc(slices.Clone(s.line), func(r common.Hash) bool { return r == root }), root)
	if len(line) <= s.cfg.Retention+1 {
		return line, nil
	}
	line = line[len(line)-s.cfg.Retention-1:]
	above := s.ancestors(root)
	// A reorg may have moved the canonical chain to another branch. Some of the oldest roots
	// in line are then not on the new branch.
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

// ancestors returns a root together with all roots from which it descends.
func (s *Store) ancestors(root common.Hash) map[common.Hash]bool {
	return reach([]common.Hash{root}, func(r common.Hash) []common.Hash { return s.roots[r].parents })
}

// descendants returns the given roots and all roots that descend from them.
func (s *Store) descendants(roots []common.Hash) map[common.Hash]bool {
	children := make(map[common.Hash][]common.Hash, len(s.roots))
	for r, p := range s.roots {
		for _, parent := range p.parents {
			children[parent] = append(children[parent], r)
		}
	}
	return reach(roots, func(r common.Hash) []common.Hash { return children[r] })
}

// reach returns the given roots and everything that can be reached from them by calling
// next repeatedly, for example all ancestors if next returns the parents.
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

// relink adds to the change the new links of the roots that remain.
func (s *Store) relink(c *change, left map[common.Hash]bool) (err error) {
	below := s.ancestors(c.canonical)
	for _, root := range c.gone {
		// Code of a discarded ancestor of the canonical root is kept forever.
		if below[root] {
			c.keep = union(c.keep, s.roots[root].codes)
		}
	}
	for root, p := range s.roots {
		// A root that is being deleted needs no new link. Leaving it out also saves following
		// the same chain of deleted parents several times.
		if left[root] || root == EmptyRoot {
			continue
		}
		l := p.link
		// A deleted parent is replaced by its own parents that remain.
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
		// With another base, the root needs another write set.
		if l.base != p.base && l.base != root && s.cfg.Disk != nil {
			if c.writes[root], err = s.lead(l.base, root); err != nil {
				return err
			}
		}
	}
	return nil
}

// nextBase returns the base of a root after the roots in left are deleted.
func (s *Store) nextBase(root common.Hash, c *change, left map[common.Hash]bool) common.Hash {
	switch root {
	case c.flat:
		return c.flat
	// This root is older than the new flat root, for example because it is pinned. Describe it
	// by its difference from the canonical root, which stays longest, so that the difference
	// rarely has to be written again.
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

// surviving returns the parents of a root after the roots in left are deleted.
func (s *Store) surviving(root common.Hash, left map[common.Hash]bool) (parents, passed []common.Hash) {
	seen := map[common.Hash]bool{root: true}
	var climb func(common.Hash)
	climb = func(r common.Hash) {
		for _, parent := range s.roots[r].parents {
			switch {
			case seen[parent]:
				continue
			// A deleted parent is replaced by its own surviving parents.
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
