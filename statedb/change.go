package statedb

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// change collects everything that one call changes in a store. The store first writes it to the
// disk as one batch and then makes it visible in memory. Memory therefore never shows anything that
// a crash could lose.
type change struct {
	canonical common.Hash
	line      []common.Hash
	flat      common.Hash                 // root whose values the disk stores
	fresh     *published                  // newly published root, or nil
	links     map[common.Hash]link        // new links between roots, by root
	values    []ubt.Write                 // writes that lead from the old flat root to the new one
	writes    map[common.Hash][]ubt.Write // new write sets, for roots with a new base
	gone      []common.Hash               // deleted roots, already marked as leaving
	code      []codeBlob                  // new code
	keep      []common.Hash               // code that is kept forever from now on
	drop      []common.Hash               // code that no root owns any more
}

// unchanged returns a change that keeps everything; callers set what differs.
func (s *Store) unchanged() *change {
	// The caller holds s.writing.
	return &change{
		canonical: s.canonical, line: s.line, flat: s.flat,
		links: make(map[common.Hash]link), writes: make(map[common.Hash][]ubt.Write),
	}
}

// move makes another root canonical and deletes the roots in gone.
func (s *Store) move(canonical common.Hash, line, gone []common.Hash) error {
	// The caller holds s.writing. No new view can be opened on the roots in gone, because they
	// are marked as leaving. line has the canonical roots that Config.Retention keeps.
	c, err := s.plan(canonical, line, gone)
	if err == nil {
		err = s.apply(c)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		// Nothing has changed, so these roots stay.
		for _, root := range gone {
			s.roots[root].leaving = false
		}
	}
	return err
}

// plan computes the change for move.
func (s *Store) plan(canonical common.Hash, line, gone []common.Hash) (c *change, err error) {
	c = s.unchanged()
	c.canonical, c.line, c.gone = canonical, line, gone
	left := make(map[common.Hash]bool, len(gone))
	for _, root := range gone {
		left[root] = true
	}
	if c.flat = s.nextFlat(c, left); c.flat != s.flat && s.cfg.Disk != nil {
		if c.values, err = s.lead(s.flat, c.flat); err != nil {
			return nil, err
		}
	}
	if len(gone) > 0 || c.flat != s.flat {
		err = s.relink(c, left)
	}
	return c, err
}

// lead returns the writes that turn one root's tree into another's.
func (s *Store) lead(from, to common.Hash) ([]ubt.Write, error) {
	if p := s.roots[to]; p.base == from && to != from {
		return p.writes, nil
	}
	before, err := s.tree(s.roots[from])
	if err != nil {
		return nil, err
	}
	after, err := s.tree(s.roots[to])
	if err != nil {
		return nil, err
	}
	return slices.Collect(after.Diff(before)), nil
}

// apply writes a change to the disk and then makes it visible in memory.
func (s *Store) apply(c *change) error {
	// The caller holds s.writing.
	c.drop = s.code.dropped(c, s.roots)
	if s.cfg.Disk != nil {
		// If the disk fails, nothing changes in memory.
		if err := s.write(s.records(c)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code.apply(c, s.roots)
	if c.fresh != nil {
		s.roots[c.fresh.tree.root] = c.fresh
	}
	for root, l := range c.links {
		p := s.roots[root]
		if p.link = l; root == c.flat {
			p.writes = nil
		}
	}
	for root, writes := range c.writes {
		s.roots[root].writes = writes
	}
	for _, root := range c.gone {
		delete(s.roots, root)
	}
	s.canonical, s.line, s.flat = c.canonical, c.line, c.flat
	s.cfg.Metrics.Add(CountDiscarded, "", len(c.gone))
	return nil
}

// nextFlat returns the next flat root: the root whose values the disk stores
// directly.
func (s *Store) nextFlat(c *change, left map[common.Hash]bool) common.Hash {
	// The disk stores all values only for the flat root. For every newer root, it stores the
	// writes that lead to it. To keep these writes few, the flat root follows the oldest root
	// that is kept.
	stays := s.flat != EmptyRoot && !left[s.flat] && (s.cfg.Retention == KeepAll || slices.Contains(c.line, s.flat))
	next := c.canonical
	for root := c.canonical; root != s.flat && root != EmptyRoot; root = s.roots[root].base {
		if !left[root] {
			next = root
		} else if s.roots[root].base == s.flat {
			// The next root after the flat root is discarded. Its writes must then be stored
			// with its successor, whose write set would grow with each discarded root. Moving
			// the flat root avoids that.
			stays = false
		}
	}
	if stays {
		return s.flat
	}
	return next
}
