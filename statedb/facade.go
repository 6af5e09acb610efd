package statedb

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Facade is a view with the calls that hosts know from trees that are not guarded. They work on the node's own one, which Store.Facade returns; a
// copy of it must not move or forget what everybody stands on. There they panic, because it is a mistake in the host's code and not a
// state of the world; with [CloneErrors] they return ErrClone instead and change nothing.
//
// Like a view it belongs to one goroutine at a time. Hosts that have the choice use [View], which does not have these methods, so that the
// compiler is the guard.
type Facade struct {
	*View
	clone  bool
	errors bool
}

// FacadeOption is an option of Store.Facade.
type FacadeOption func(*Facade)

// CloneErrors makes the guarded calls return ErrClone on a clone, where else they panic.
func CloneErrors() FacadeOption { return func(f *Facade) { f.errors = true } }

// Facade returns the node's own facade, on the canonical root.
func (s *Store) Facade(options ...FacadeOption) (*Facade, error) {
	view, err := s.View(s.Canonical())
	if err != nil {
		return nil, err
	}
	f := &Facade{View: view}
	for _, option := range options {
		option(f)
	}
	return f, nil
}

// Copy is View.Copy; the copy is a clone.
func (f *Facade) Copy() *Facade { return &Facade{View: f.View.Copy(), clone: true, errors: f.errors} }

// CopyForPhase2 is View.CopyForPhase2; the copy is a clone.
func (f *Facade) CopyForPhase2() *Facade {
	return &Facade{View: f.View.CopyForPhase2(), clone: true, errors: f.errors}
}

// guard panics on a clone, or returns an error.
func (f *Facade) guard(call string) error {
	if !f.clone {
		return nil
	}
	err := fmt.Errorf("%w: %s on root %s", ErrClone, call, f.ActiveRoot())
	if !f.errors {
		panic(err)
	}
	return err
}

// SetCanonicalRoot is Store.SetCanonical. On a clone it panics or returns ErrClone.
func (f *Facade) SetCanonicalRoot(root common.Hash) error {
	if err := f.guard("SetCanonicalRoot"); err != nil {
		return err
	}
	return f.store.SetCanonical(root)
}

// CommitAsCanonical commits what is staged and makes the new root canonical. If that fails the root is published and the view stands on it
// all the same. On a clone it panics or returns ErrClone.
func (f *Facade) CommitAsCanonical() (common.Hash, error) {
	if err := f.guard("CommitAsCanonical"); err != nil {
		return common.Hash{}, err
	}
	root, err := f.Commit()
	if err != nil {
		return common.Hash{}, err
	}
	return root, f.store.SetCanonical(root)
}

// DiscardTree is Store.Discard. On a clone it panics or returns ErrClone.
func (f *Facade) DiscardTree(root common.Hash) error {
	if err := f.guard("DiscardTree"); err != nil {
		return err
	}
	return f.store.Discard(root)
}

// ResetTrie goes back to the canonical root, with nothing staged, nothing read and no pin. On a clone it panics or returns ErrClone.
func (f *Facade) ResetTrie() error {
	if err := f.guard("ResetTrie"); err != nil {
		return err
	}
	canonical := f.store.Canonical()
	tree, err := f.store.tree(canonical)
	if err != nil {
		return err
	}
	f.unpin()
	f.stand(canonical, tree)
	f.home = place{canonical, tree}
	return nil
}
