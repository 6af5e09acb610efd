package statedb

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// View is one isolated view of the state: a published root, and writes on top that nobody else sees. It belongs to one goroutine
// at a time; any number of views may work in parallel. A view that is not needed any more is simply dropped, after Unpin if it is pinned.
type View struct {
	profile *Profile
	store   *Store // nil for a stateless view
	codes   codeSource
	shown   map[Key]*Entry // of the witness, for a stateless view; else nil

	root        common.Hash
	tree        ubt.Tree
	home        place // where Unpin goes back to
	pinned      bool
	transaction int

	staged  sorted[Write]
	newCode sorted[codeBlob] // staged
	reads   readLog
	byChunk bool // code is read chunk by chunk
	err     error
}

// place is a root with its tree.
type place struct {
	root common.Hash
	tree ubt.Tree
}

// codeBlob is code with its hash.
type codeBlob struct {
	hash common.Hash
	code []byte
}

func blobLess(a, b codeBlob) bool { return a.hash.Cmp(b.hash) < 0 }

// codeSource is where published code is.
type codeSource interface {
	// codeOf returns code by its hash, and whether it is known.
	codeOf(common.Hash) ([]byte, bool)
}

func writeLess(a, b Write) bool { return a.Key.Compare(b.Key) < 0 }

func newView(s *Store, root common.Hash, tree ubt.Tree) *View {
	return &View{profile: &s.cfg.Profile, store: s, codes: s, root: root, tree: tree, home: place{root, tree}}
}

// Copy returns a full snapshot, for work that takes long: the same root, staged writes and log of reads, and a pin of its own if the view is
// pinned. From then on neither sees what the other does. It takes constant time.
func (v *View) Copy() *View {
	c := *v
	c.staged = v.staged.copy()
	c.reads = v.reads.copy()
	c.newCode = v.newCode.copy()
	if c.pinned {
		v.store.repin(c.root)
	}
	return &c
}

// CopyForPhase2 returns a view that shares the read-only state and nothing else: it stands on the active root with nothing staged and an
// empty log of reads, for building a bundle of what was executed before. It has a pin of its own if the view is pinned. It takes constant
// time.
func (v *View) CopyForPhase2() *View {
	c := *v
	c.stand(v.root, v.tree)
	if c.pinned {
		v.store.repin(c.root)
	}
	return &c
}

// Profile returns the profile of the view's tree.
func (v *View) Profile() Profile { return *v.profile }

// ActiveRoot returns the published root that the view stands on: that of the last Pin, Unpin or Commit, or the one it was opened on.
func (v *View) ActiveRoot() common.Hash { return v.root }

// Err returns the first thing that went wrong in a read, which then gave zero: it wraps ErrNotInWitness, on a stateless view, or ErrUnknownCode. A
// view with an error gives neither a root nor a witness, until Reset, Pin or Unpin.
func (v *View) Err() error { return v.err }

// SetTransaction says which transaction the reads from now on belong to.
func (v *View) SetTransaction(index int) { v.transaction = index }

// Get returns the value of a key, as staged or else as in the active root, and whether there is one. The key is logged as read.
func (v *View) Get(k Key) (value [32]byte, ok bool) { return v.read(Access{Kind: RawAccess, Key: k}) }

// Set stages a value. Zero deletes if the profile says so. Unless the profile is tagged, k must not begin with twelve zero bytes, see Verify: Witness
// gives an error once such a key is there.
func (v *View) Set(k Key, value [32]byte) { v.write(Access{Kind: RawAccess, Key: k}, value) }

// Delete stages the absence of a value, whatever the profile says of zeros.
func (v *View) Delete(k Key) {
	v.stage(Write{Access: Access{Kind: RawAccess, Key: k}, Deleted: true})
}

// read logs an access and looks the value up.
func (v *View) read(a Access) (value [32]byte, ok bool) {
	v.reads.add(a, v.transaction)
	if w, staged := v.staged.get(Write{Access: a}); staged {
		return w.Value, !w.Deleted
	}
	value, ok, err := v.tree.Get(a.Key)
	if err != nil || v.shown != nil && v.shown[a.Key] == nil {
		v.fail(fmt.Errorf("%w: %s", ErrNotInWitness, a))
		return [32]byte{}, false
	}
	return value, ok
}

func (v *View) write(a Access, value [32]byte) {
	v.stage(Write{Access: a, Value: value, Deleted: v.profile.ZeroDeletes && value == [32]byte{}})
}

// stage keeps a write. A key that was written as what it stands for stays that.
func (v *View) stage(w Write) {
	if w.Kind == RawAccess {
		if before, again := v.staged.get(w); again {
			w.Access = before.Access
		}
	}
	v.staged.put(w, writeLess)
}

func (v *View) fail(err error) {
	if v.err == nil {
		v.err = err
	}
}

// Mark returns this moment in the log of reads, for Rewind.
func (v *View) Mark() ReadMark { return v.reads.mark() }

// Rewind takes out of the log what was first read after a mark of this view, which is of its active root; writes and Err stay. It is for whoever executed something, leaves it out after all,
// and lets nothing depend on what that has read: a witness proves what is in the log and nothing else.
func (v *View) Rewind(m ReadMark) { v.reads.rewind(m) }

// Reads returns what was read since the view was opened, pinned or committed, each key once, in the order of first access.
func (v *View) Reads() []Read { return v.reads.list() }

// Writes returns what is staged, in the order of keys.
func (v *View) Writes() []Write {
	out := make([]Write, 0, v.staged.len())
	for w := range v.staged.all {
		if w.Kind == RawAccess { // it may have been read as what it stands for
			if r, read := v.reads.byKey.get(logged[Read]{what: Read{Access: w.Access}}); read {
				w.Access = r.what.Access
			}
		}
		out = append(out, w)
	}
	return out
}

// Root returns the root that Commit would publish. It publishes nothing. The error is Err's; or wraps ErrNotInWitness, if a stateless view
// has a write that its witness does not have.
func (v *View) Root() (common.Hash, error) {
	tree, err := v.applied()
	return tree.Root(), err
}

// applied returns the tree with the staged writes.
func (v *View) applied() (ubt.Tree, error) {
	if v.err != nil {
		return ubt.Tree{}, v.err
	}
	writes := make([]ubt.Write, 0, v.staged.len())
	for w := range v.staged.all {
		if e := v.shown[w.Key]; v.shown != nil && (e == nil || e.Set == w.Deleted || e.Deleted != w.Deleted) {
			return ubt.Tree{}, fmt.Errorf("%w: write of %s, deleted: %v", ErrNotInWitness, w.Access, w.Deleted)
		}
		writes = append(writes, ubt.Write{Key: w.Key, Value: w.Value, Deleted: w.Deleted})
	}
	tree, err := v.tree.Apply(&v.profile.Hasher, writes)
	if errors.Is(err, ubt.ErrHidden) { // a write that the witness has was not staged
		err = fmt.Errorf("%w: %w", ErrNotInWitness, err)
	}
	return tree, err
}

// Commit publishes the staged writes as a new root of the store and returns it. The view then stands on that root, with nothing staged, an
// empty log of reads and no pin. No other view sees a difference and the canonical root does not move. The error is of the store's disk, or
// wraps ErrStateless; it changes nothing.
func (v *View) Commit() (common.Hash, error) {
	if v.store == nil {
		return common.Hash{}, fmt.Errorf("%w: it cannot commit", ErrStateless)
	}
	tree, err := v.applied()
	if err != nil {
		return common.Hash{}, err
	}
	code := make(map[common.Hash][]byte, v.newCode.len())
	for c := range v.newCode.all {
		code[c.hash] = c.code
	}
	if err := v.store.publish(v.root, tree, code); err != nil {
		return common.Hash{}, err
	}
	v.unpin()
	v.stand(tree.Root(), tree)
	v.home = place{v.root, v.tree}
	return v.root, nil
}

// stand puts the view on a root, with nothing staged and nothing read.
func (v *View) stand(root common.Hash, tree ubt.Tree) {
	v.root, v.tree = root, tree
	v.staged, v.newCode = sorted[Write]{}, sorted[codeBlob]{}
	v.reads, v.transaction, v.err = readLog{}, 0, nil
}

// Reset drops what is staged, the log of reads, and Err.
func (v *View) Reset() { v.stand(v.root, v.tree) }

// Pin puts the view on another published root, with an empty log of reads, and holds that root in the store until Unpin, Commit or another Pin.
// The error wraps ErrStaged, ErrUnknownRoot or ErrStateless and changes nothing.
func (v *View) Pin(root common.Hash) error {
	if err := v.canMove(); err != nil {
		return err
	}
	tree, err := v.store.pinned(root)
	if err != nil {
		return err
	}
	v.unpin()
	v.stand(root, tree)
	v.pinned = true
	return nil
}

// Unpin goes back to where the view stood before the first Pin. The error wraps ErrNotPinned, ErrStaged or ErrStateless and changes nothing.
func (v *View) Unpin() error {
	if err := v.canMove(); err != nil {
		return err
	}
	if !v.pinned {
		return fmt.Errorf("%w: the view on %s", ErrNotPinned, v.root)
	}
	v.unpin()
	v.stand(v.home.root, v.home.tree)
	return nil
}

func (v *View) canMove() error {
	switch {
	case v.store == nil:
		return fmt.Errorf("%w: it stands on its witness", ErrStateless)
	case v.staged.len() > 0:
		return fmt.Errorf("%w: %d on %s, want Commit or Reset first", ErrStaged, v.staged.len(), v.root)
	}
	return nil
}

func (v *View) unpin() {
	if v.pinned {
		v.pinned = false
		v.store.release(v.root)
	}
}

// All yields every value of the active root, without what is staged, in the order of keys. It logs nothing. A stateless view yields those that its
// witness opens.
func (v *View) All(yield func(Key, [32]byte) bool) { v.tree.All(yield) }
