package statedb

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Facade is a view with additional methods, for hosts whose code expects one object that executes
// blocks and also moves the canonical root. These methods work only on the facade of the node,
// which [Store.Facade] returns. A copy is a clone, and must not move or discard a state that others
// use. If a host calls one of the methods on a clone, it has a bug, so the method panics. With
// [CloneErrors] it returns ErrClone instead, and changes nothing.
//
// A Facade belongs to one goroutine at a time. New code should use [View], which does not have
// these methods, so that the compiler finds the mistake.
type Facade struct {
	*View
	clone  bool
	errors bool
}

// FacadeOption is an option of Store.Facade.
type FacadeOption func(*Facade)

// CloneErrors makes the guarded methods return ErrClone on a clone instead of
// panicking.
func CloneErrors() FacadeOption { return func(f *Facade) { f.errors = true } }

// Facade returns a facade of the canonical root. It is not a clone.
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

// Copy returns a clone with the same contents; see [View.Copy].
func (f *Facade) Copy() *Facade { return &Facade{View: f.View.Copy(), clone: true, errors: f.errors} }

// CopyForPhase2 returns a clone of the active root; see [View.CopyForPhase2].
func (f *Facade) CopyForPhase2() *Facade {
	return &Facade{View: f.View.CopyForPhase2(), clone: true, errors: f.errors}
}

// guard panics or returns an error if a method that only the node may call is called on a clone.
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

// SetCanonicalRoot calls [Store.SetCanonical]. On a clone it panics or returns
// ErrClone.
func (f *Facade) SetCanonicalRoot(root common.Hash) error {
	if err := f.guard("SetCanonicalRoot"); err != nil {
		return err
	}
	return f.store.SetCanonical(root)
}

// CommitAsCanonical commits the staged writes and makes the new root canonical.
// If only the second part fails, the root is published and the view has moved
// to it. On a clone it panics or returns ErrClone.
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

// DiscardTree calls [Store.Discard]. On a clone it panics or returns ErrClone.
func (f *Facade) DiscardTree(root common.Hash) error {
	if err := f.guard("DiscardTree"); err != nil {
		return err
	}
	return f.store.Discard(root)
}

// ResetTrie moves the view to the canonical root, with no staged writes, an
// empty log of reads and no pin. On a clone it panics or returns ErrClone.
func (f *Facade) ResetTrie() error {
	if err := f.guard("ResetTrie"); err != nil {
		return err
	}
	at, err := f.store.place(f.store.Canonical())
	if err != nil {
		return err
	}
	f.unpin()
	f.stand(at)
	f.home = at
	return nil
}
