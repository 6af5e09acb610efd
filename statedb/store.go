package statedb

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// EmptyRoot is the root of a tree without values.
var EmptyRoot = ubt.EmptyRoot

// Store holds the published roots of one rollup's state. One of these roots is canonical. A Store
// is safe for concurrent use.
type Store struct {
	cfg Config

	// writing is held while the roots change, including the write to the disk. mu
	// guards the fields below it, but is not held during the write to the disk, so
	// that readers never wait for the disk.
	writing sync.Mutex
	broken  error       // first disk error; guarded by writing
	flat    common.Hash // root whose values the disk stores; guarded by writing

	mu        sync.RWMutex
	roots     map[common.Hash]*published
	canonical common.Hash
	// line contains the canonical roots that retention keeps, oldest first. The
	// last one is canonical now.
	line []common.Hash
	code codes
}

// published is a published root, on which views can be opened, with its tree.
type published struct {
	tree *lazyTree
	link
	writes  []ubt.Write // writes that lead from the base to this root; nil without a disk
	pins    int         // number of pins by Store.Pin
	viewers int         // number of pins by views
	// leaving is true while the root is being deleted from the disk. The store
	// already treats the root as unknown.
	leaving bool
}

// inUse reports whether the root is pinned.
func (p *published) inUse() bool { return p.pins > 0 || p.viewers > 0 }

// NewStore returns a store that is in memory only and has DefaultRetention. It contains the empty
// tree, whose root is canonical.
func NewStore() *Store { return newStore(Config{}) }

func newStore(cfg Config) *Store {
	if cfg.Retention == 0 {
		cfg.Retention = DefaultRetention
	}
	return &Store{
		cfg:   cfg,
		roots: map[common.Hash]*published{EmptyRoot: {tree: ready(ubt.Tree{})}},
		line:  []common.Hash{EmptyRoot},
		code:  newCodes(),
	}
}

// View returns a new view of a published root. It takes constant time, except that
// the first view of a root that Open found on the disk must derive the root's tree.
// The error wraps ErrUnknownRoot, or ErrCorrupt if the records on the disk lead to
// another root.
func (s *Store) View(root common.Hash) (*View, error) {
	at, err := s.place(root)
	if err != nil {
		return nil, err
	}
	return newView(s, at), nil
}

// place finds a published root for a new view, and returns its tree and the code that is
// published now.
func (s *Store) place(root common.Hash) (place, error) {
	s.mu.RLock()
	p, err := s.known(root)
	codes := s.code.blobs
	s.mu.RUnlock()
	if err != nil {
		return place{}, err
	}
	tree, err := s.tree(p)
	return place{root, tree, codes}, err
}

// tree returns a root's tree, and computes it on the first call after Open.
func (s *Store) tree(p *published) (ubt.Tree, error) { return p.tree.get() }

// known returns a published root, or ErrUnknownRoot. The caller must hold mu.
func (s *Store) known(root common.Hash) (*published, error) {
	if p, ok := s.roots[root]; ok && !p.leaving {
		return p, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknownRoot, root)
}

// Has reports whether root is published.
func (s *Store) Has(root common.Hash) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, err := s.known(root)
	return err == nil
}

// Parent returns the root on which the given root was first committed. If that
// parent was discarded, Parent returns the closest ancestor that remains. The empty
// root is its own parent. The error wraps ErrUnknownRoot.
//
// Blocks in different orders can lead to the same root. Such a root has several
// parents, and retention treats it as a descendant of each of them.
func (s *Store) Parent(root common.Hash) (common.Hash, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, err := s.known(root)
	if err != nil {
		return common.Hash{}, err
	}
	if root == EmptyRoot {
		return EmptyRoot, nil
	}
	return p.parents[0], nil
}

// Canonical returns the canonical root.
func (s *Store) Canonical() common.Hash {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.canonical
}

// Roots returns the number of published roots.
func (s *Store) Roots() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.roots)
}

// SetCanonical makes a root canonical and then discards old roots as Config.Retention demands. No
// other method moves the canonical root. If the error wraps ErrUnknownRoot, ErrDisk or ErrCorrupt,
// nothing has changed.
func (s *Store) SetCanonical(root common.Hash) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	if _, err := s.known(root); err != nil || root == s.canonical {
		s.mu.Unlock()
		return err
	}
	line, gone := s.retire(root)
	s.mu.Unlock()
	if err := s.move(root, line, gone); err != nil {
		return err
	}
	s.cfg.Metrics.Add(CountCanonical, "", 1)
	return nil
}

// Pin keeps a root from being discarded until Unpin has been called as often as
// Pin. Pins are not stored on the disk. The error wraps ErrUnknownRoot.
//
// Pin a root that is older than the retention only for a short time, because such
// a pin costs writes. Each time that Config.Retention more roots have become
// canonical, the store rewrites about everything that the canonical root has
// changed since the pinned root.
func (s *Store) Pin(root common.Hash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.known(root)
	if err == nil {
		p.pins++
	}
	return err
}

// pinned pins a root for a view, and returns its tree and code.
func (s *Store) pinned(root common.Hash) (place, error) {
	s.mu.Lock()
	p, err := s.known(root)
	if err == nil {
		p.viewers++
	}
	s.mu.Unlock()
	if err != nil {
		return place{}, err
	}
	at, err := s.place(root)
	if err != nil {
		s.release(root)
	}
	return at, err
}

// repin adds a pin for the copy of a view whose root is pinned.
func (s *Store) repin(root common.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots[root].viewers++
}

// Unpin removes one pin that Pin has set. A root without pins can be deleted by
// Discard, or when retention next removes old roots. The error wraps
// ErrUnknownRoot, or ErrNotPinned if Pin has not pinned the root.
func (s *Store) Unpin(root common.Hash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.known(root)
	switch {
	case err != nil:
		return err
	case p.pins == 0:
		return fmt.Errorf("%w: %s", ErrNotPinned, root)
	}
	p.pins--
	return nil
}

// release removes the pin of a view.
func (s *Store) release(root common.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots[root].viewers--
}

// Discard takes back one commit of a root. Several versions of a block can lead to
// the same root, so a root is deleted only when Discard has been called once for
// each commit that led to it. Code that only deleted roots had is deleted too. Open
// views of a deleted root can still read, but can no longer commit.
//
// Discarding the empty root has no effect. If Discard returns an error, nothing has changed. The
// error wraps one of these:
//
//   - ErrUnknownRoot: the root is not published.
//   - ErrInUse: this would be the last commit of a root that is canonical or pinned.
//   - ErrDisk or ErrCorrupt: the disk has failed or is damaged.
func (s *Store) Discard(root common.Hash) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	p, err := s.known(root)
	last := err == nil && p.commits <= 1
	if last && (root == s.canonical || p.inUse()) {
		err = fmt.Errorf("%w: %s: canonical %v, %d pins and %d pins of views", ErrInUse, root, root == s.canonical, p.pins, p.viewers)
	}
	if err != nil || root == EmptyRoot {
		s.mu.Unlock()
		return err
	}
	p.leaving = last
	line := slices.DeleteFunc(slices.Clone(s.line), func(r common.Hash) bool { return last && r == root })
	s.mu.Unlock()
	if !last {
		l := p.link
		l.commits--
		c := s.unchanged()
		c.links[root] = l
		return s.apply(c)
	}
	return s.move(s.canonical, line, []common.Hash{root})
}

// publish turns the result of a view's commit into a published root.
func (s *Store) publish(parent common.Hash, tree ubt.Tree, writes []ubt.Write, code []codeBlob) (place, error) {
	root := tree.Root()
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.RLock()
	_, err := s.known(parent)
	s.mu.RUnlock()
	if err != nil {
		return place{}, fmt.Errorf("commit on a discarded root: %w", err)
	}
	c := s.unchanged()
	if root != EmptyRoot {
		p, known := s.roots[root]
		if !known {
			p = &published{tree: ready(tree), link: link{base: parent}}
			if s.cfg.Disk != nil {
				p.writes = writes
			}
			c.fresh = p
		}
		p.tree.set(tree)
		// The commit counts for the root in any case. If the root existed before, because other
		// writes led to the same state, it has one more commit now and, if parent is new, one
		// more parent.
		c.links[root] = p.again(root, parent, s.code.unkept(code))
		c.code = s.code.unknown(code)
	}
	if err := s.apply(c); err != nil {
		return place{}, err
	}
	if c.fresh != nil {
		s.cfg.Metrics.Add(CountCommitted, "", 1)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return place{root, tree, s.code.blobs}, nil
}
