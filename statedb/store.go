package statedb

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// EmptyRoot is the root of a tree without values.
var EmptyRoot = ubt.EmptyRoot

// Store holds the published roots of one state and says which is canonical. It is safe for concurrent use.
type Store struct {
	cfg Config
	bad error // of the profile

	// writing is held by who changes the roots, while the disk works too; mu guards them, and is never held while the disk works.
	writing sync.Mutex
	broken  error // of the disk; guarded by writing

	mu        sync.RWMutex
	roots     map[common.Hash]*published
	canonical common.Hash
	line      []common.Hash          // the canonical roots, oldest first, as far as retention keeps them; the last is the canonical one
	code      map[common.Hash][]byte // by code hash; kept for as long as the store lives
}

// published is a tree that views can be opened on.
type published struct {
	tree ubt.Tree
	link
	pins    int // by Store.Pin
	viewers int // views that are pinned to it
	// leaving says that the disk is about to forget it: nobody gets it any more.
	leaving bool
}

// inUse says that the root must not be discarded.
func (p *published) inUse() bool { return p.pins > 0 || p.viewers > 0 }

// NewStore returns a store in memory that keeps every root until Discard. It holds the empty tree, which is canonical. The zero Profile means
// EIP7864. Of a profile that lacks a func the store gives no view.
func NewStore(profile Profile) *Store { return newStore(Config{Profile: profile}) }

func newStore(cfg Config) *Store {
	profile, err := cfg.Profile.orDefault()
	cfg.Profile = profile
	return &Store{
		cfg:   cfg,
		bad:   err,
		roots: map[common.Hash]*published{EmptyRoot: {}},
		line:  []common.Hash{EmptyRoot},
		code:  make(map[common.Hash][]byte),
	}
}

// Profile returns the store's profile.
func (s *Store) Profile() Profile { return s.cfg.Profile }

// View returns a fresh view of a published root, for importing or making a block on it. It takes constant time. The error wraps
// ErrUnknownRoot, or ErrConfig where NewStore had a profile that lacks a func.
func (s *Store) View(root common.Hash) (*View, error) {
	if s.bad != nil {
		return nil, s.bad
	}
	tree, err := s.tree(root)
	if err != nil {
		return nil, err
	}
	return newView(s, root, tree), nil
}

func (s *Store) tree(root common.Hash) (ubt.Tree, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, err := s.known(root)
	if err != nil {
		return ubt.Tree{}, err
	}
	return p.tree, nil
}

// known returns a published root, under the lock.
func (s *Store) known(root common.Hash) (*published, error) {
	if p, ok := s.roots[root]; ok && !p.leaving {
		return p, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknownRoot, root)
}

// Has reports whether a root is published.
func (s *Store) Has(root common.Hash) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, err := s.known(root)
	return err == nil
}

// Parent returns the root that a root was first committed on; if that was discarded, its parent, and so on. Where it was discarded before the
// commit, it is the root that was canonical then. The empty root is its own parent. The error wraps ErrUnknownRoot.
//
// Another root can lead to the same state. A root that was committed on several descends from each of them, as Config.Retention sees it.
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

// Roots returns how many roots are published.
func (s *Store) Roots() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.roots)
}

// SetCanonical moves the canonical root; nothing else does. Then Config.Retention takes effect. The error wraps ErrUnknownRoot, or ErrDisk, and
// changes nothing.
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
	if err := s.change(root, line, gone); err != nil {
		return err
	}
	s.cfg.Metrics.count(CountCanonical, 1)
	return nil
}

// Pin keeps a root from being discarded until Unpin was called as often. Pins do not outlive the process. The error wraps ErrUnknownRoot.
func (s *Store) Pin(root common.Hash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.known(root)
	if err == nil {
		p.pins++
	}
	return err
}

// pinned pins a root for a view and returns its tree.
func (s *Store) pinned(root common.Hash) (ubt.Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.known(root)
	if err != nil {
		return ubt.Tree{}, err
	}
	p.viewers++
	return p.tree, nil
}

// repin pins a root for one more view than the one that has it pinned, so that it is there.
func (s *Store) repin(root common.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots[root].viewers++
}

// Unpin takes a Pin back, but not a view's. The root stays until Discard, or until retention finds it unpinned. The error wraps ErrUnknownRoot, or
// ErrNotPinned where there was no pin to take back.
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

// release takes a view's pin back.
func (s *Store) release(root common.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots[root].viewers--
}

// Discard forgets a root; views of it that are open already go on as they were. The error wraps ErrUnknownRoot, or ErrInUse for a
// root that is canonical or pinned, or ErrDisk; it changes nothing. The empty root is never forgotten.
func (s *Store) Discard(root common.Hash) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	p, err := s.known(root)
	if err == nil && (root == s.canonical || p.inUse()) {
		err = fmt.Errorf("%w: %s: canonical %v, %d pins, and %d of views", ErrInUse, root, root == s.canonical, p.pins, p.viewers)
	}
	if err != nil || root == EmptyRoot {
		s.mu.Unlock()
		return err
	}
	p.leaving = true
	line := slices.DeleteFunc(slices.Clone(s.line), func(r common.Hash) bool { return r == root })
	s.mu.Unlock()
	return s.change(s.canonical, line, []common.Hash{root})
}

// change moves the canonical root and forgets roots that are marked as leaving: on the disk, and then here.
func (s *Store) change(canonical common.Hash, line, gone []common.Hash) error {
	links := s.relink(canonical, gone)
	if s.cfg.Disk != nil {
		if err := s.write(s.moved(canonical, line, links, gone)); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, root := range gone {
				s.roots[root].leaving = false
			}
			return err
		}
	}
	s.mu.Lock()
	s.canonical, s.line = canonical, line
	for root, l := range links {
		s.roots[root].link = l
	}
	for _, root := range gone {
		delete(s.roots, root)
	}
	s.mu.Unlock()
	s.cfg.Metrics.count(CountDiscarded, len(gone))
	return nil
}

// publish adds a tree that was made on parent. One that is there already has one more parent now.
func (s *Store) publish(parent common.Hash, tree ubt.Tree, code map[common.Hash][]byte) error {
	root := tree.Root()
	s.writing.Lock()
	defer s.writing.Unlock()
	fresh := !s.Has(root)
	if !s.Has(parent) { // it was discarded while the view was open
		parent = s.canonical
	}
	p, place := &published{tree: tree}, link{parents: []common.Hash{parent}, base: parent}
	if !fresh {
		p = s.roots[root]
		place = p.with(root, parent)
	}
	if s.cfg.Disk != nil {
		if err := s.write(s.added(p, place, code)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	p.link = place
	s.roots[root] = p
	maps.Copy(s.code, code)
	s.mu.Unlock()
	if fresh {
		s.cfg.Metrics.count(CountCommitted, 1)
	}
	return nil
}

// codeOf implements codeSource.
func (s *Store) codeOf(h common.Hash) ([]byte, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	code, ok := s.code[h]
	return code, ok
}
