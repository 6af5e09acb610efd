package statedb

import (
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
)

// EmptyRoot is the root of a tree without values.
var EmptyRoot = common.Hash{}

// Store holds the published roots of one state and says which is canonical. It is safe for concurrent use.
type Store struct {
	profile Profile

	mu        sync.RWMutex
	roots     map[common.Hash]*published
	canonical common.Hash
	code      map[common.Hash][]byte // by code hash; kept for as long as the store lives
}

// published is a tree that views can be opened on.
type published struct {
	tree   *node
	parent common.Hash
	pins   int
}

// NewStore returns a store that holds the empty tree, which is canonical.
func NewStore(profile Profile) *Store {
	return &Store{
		profile: profile,
		roots:   map[common.Hash]*published{EmptyRoot: {}},
		code:    make(map[common.Hash][]byte),
	}
}

// Profile returns the store's profile.
func (s *Store) Profile() Profile { return s.profile }

// View returns a view of a published root. The error wraps ErrUnknownRoot.
func (s *Store) View(root common.Hash) (*View, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, ok := s.roots[root]
	if !ok {
		return nil, fmt.Errorf("%w: %s", ErrUnknownRoot, root)
	}
	return newView(s, root, p.tree), nil
}

// Has reports whether a root is published.
func (s *Store) Has(root common.Hash) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.roots[root] != nil
}

// Parent returns the root that a root was first committed on. The error wraps ErrUnknownRoot.
func (s *Store) Parent(root common.Hash) (common.Hash, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, ok := s.roots[root]
	if !ok {
		return common.Hash{}, fmt.Errorf("%w: %s", ErrUnknownRoot, root)
	}
	return p.parent, nil
}

// Canonical returns the canonical root.
func (s *Store) Canonical() common.Hash {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.canonical
}

// SetCanonical moves the canonical root. Nothing else does. The error wraps ErrUnknownRoot and changes nothing.
func (s *Store) SetCanonical(root common.Hash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roots[root] == nil {
		return fmt.Errorf("%w: %s", ErrUnknownRoot, root)
	}
	s.canonical = root
	return nil
}

// Pin keeps a root from being discarded until Unpin was called as often. The error wraps ErrUnknownRoot.
func (s *Store) Pin(root common.Hash) error { return s.pin(root, 1) }

// Unpin takes a Pin back. The error wraps ErrUnknownRoot, also where there was no pin to take back.
func (s *Store) Unpin(root common.Hash) error { return s.pin(root, -1) }

func (s *Store) pin(root common.Hash, by int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.roots[root]
	if !ok || p.pins+by < 0 {
		return fmt.Errorf("%w: %s", ErrUnknownRoot, root)
	}
	p.pins += by
	return nil
}

// Discard forgets a root; views of it that are open already go on as they were. The error wraps ErrUnknownRoot, or ErrInUse for a
// root that is canonical or pinned. The empty root is never forgotten.
func (s *Store) Discard(root common.Hash) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.roots[root]
	switch {
	case !ok:
		return fmt.Errorf("%w: %s", ErrUnknownRoot, root)
	case root == s.canonical || p.pins > 0:
		return fmt.Errorf("%w: %s: canonical %v, %d pins", ErrInUse, root, root == s.canonical, p.pins)
	case root != EmptyRoot:
		delete(s.roots, root)
	}
	return nil
}

// Roots returns how many roots are published.
func (s *Store) Roots() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.roots)
}

// publish adds a tree. One that is there already stays as it was.
func (s *Store) publish(parent common.Hash, tree *node, code map[common.Hash][]byte) common.Hash {
	root := hashOf(tree)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roots[root] == nil {
		s.roots[root] = &published{tree: tree, parent: parent}
	}
	for h, c := range code {
		s.code[h] = c
	}
	return root
}

func (s *Store) codeOf(h common.Hash) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.code[h]
}
