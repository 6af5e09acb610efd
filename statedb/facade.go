package statedb

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Facade is a view with methods that also move the canonical root, for hosts whose
// code expects one object for both. These methods work only on the facade that
// [Store.Facade] returns, which belongs to the node. A copy of it is called a
// clone, and must not move or discard the state that others use. A host that calls
// such a method on a clone has a bug, so the method panics. With [CloneErrors], the
// method returns ErrClone instead and changes nothing.
//
// A Facade must be used by one goroutine at a time. New code should use [View],
// which does not have these methods, so that the compiler finds the mistake.
type Facade struct {
	*View
	clone  bool
	errors bool
}

// FacadeOption is an option of Store.Facade.
type FacadeOption func(*Facade)

// CloneErrors is an option of Store.Facade for hosts that must not panic. With this
// option, methods that only the original may call, such as SetCanonicalRoot, return
// ErrClone on a copy of the facade.
func CloneErrors() FacadeOption { return func(f *Facade) { f.errors = true } }

// Facade returns a view of the canonical root with which the node can also move
// the canonical root. A copy of the facade, for example for a simulation, is a
// clone and cannot do that.
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

// guard returns an error or panics if the facade is a clone.
func (f *Facade) guard(call string) error {
	if !f.clone {
		return nil
	}
	err := fmt.Errorf("%w: %s on root %s", ErrClone, call, f.ActiveRoot())
	// With the option CloneErrors, the host handles the error.
	if !f.errors {
		panic(err)
	}
	return err
}

// SetCanonicalRoot makes a root canonical: see [Store.SetCanonical]. On a clone it panics or
// returns ErrClone.
func (f *Facade) SetCanonicalRoot(root common.Hash) error {
	if err := f.guard("SetCanonicalRoot"); err != nil {
		return err
	}
	return f.store.SetCanonical(root)
}

// CommitAsCanonical commits the staged writes and makes the new root canonical. If
// the commit succeeds but the root cannot be made canonical, the root is published
// and the view reads from it. On a clone, CommitAsCanonical panics or returns
// ErrClone.
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

// DiscardTree takes back one commit of a root: see [Store.Discard]. On a clone it panics or returns
// ErrClone.
func (f *Facade) DiscardTree(root common.Hash) error {
	if err := f.guard("DiscardTree"); err != nil {
		return err
	}
	return f.store.Discard(root)
}

// ResetTrie moves the view to the canonical root. The view then has no staged
// writes, an empty log of reads and no pin. On a clone, ResetTrie panics or returns
// ErrClone.
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
