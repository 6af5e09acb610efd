package statedb

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// View is an isolated view of the state: a published root, and writes on top of it that no other
// view sees. A View belongs to one goroutine at a time; any number of views may work in parallel. A
// view need not be closed, but a pinned one should be unpinned.
type View struct {
	store     *Store     // nil for a stateless view
	shown     []ubt.Use  // keys of a stateless view's witness, in their order
	shownCode []codeBlob // code of that witness, in the order of hashes

	place
	home        place // target of Unpin
	pinned      bool
	transaction int

	staged  sorted[Write]
	newCode sorted[codeBlob] // staged
	reads   readLog
	noReads bool // the log of reads is off
	err     error
}

// place is a published root with its tree and code, as a view reads it. It stays readable when the
// root is discarded.
type place struct {
	root common.Hash
	tree ubt.Tree
	// codes is the code that was published when the view moved to this root. It is shared with
	// other views and never written.
	codes sorted[codeBlob]
}

// codeBlob is code with its hash.
type codeBlob struct {
	hash common.Hash
	code []byte
}

func blobLess(a, b codeBlob) bool { return a.hash.Cmp(b.hash) < 0 }

func writeLess(a, b Write) bool { return a.Key.Compare(b.Key) < 0 }

func newView(s *Store, at place) *View {
	return &View{store: s, place: at, home: at}
}

// Copy returns a full copy for long-running work: the same root, staged writes
// and log of reads, and a separate pin if the view is pinned. Later changes of
// one are not visible in the other. It takes constant time.
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

// CopyForPhase2 returns a view of the same active root with no staged writes
// and an empty log of reads, for building a bundle from blocks that were
// executed before. It has a separate pin if the view is pinned. It takes
// constant time.
func (v *View) CopyForPhase2() *View {
	c := *v
	c.stand(v.place)
	if c.pinned {
		v.store.repin(c.root)
	}
	return &c
}

// ActiveRoot returns the published root that the view reads from. It is the
// root that the view was opened on, or that of the last Pin, Unpin or Commit.
func (v *View) ActiveRoot() common.Hash { return v.root }

// Err returns the first error of a read. Methods such as Account and Storage return no error: a
// read that fails returns zero, and the error is kept here. It wraps ErrNotInWitness on a stateless
// view, and otherwise ErrUnknownCode. A view with an error returns it from Root, Witness and Commit
// too, until Reset, Pin or Unpin.
func (v *View) Err() error { return v.err }

// SetTransaction sets the transaction index that the view logs with later reads and writes.
func (v *View) SetTransaction(index int) { v.transaction = index }

// DisableReadLog turns the log of reads off for good and drops its contents. It saves time and
// memory for executions that need no witness. Witness and Matches then return ErrNoReadLog. Copies
// of the view have no log either.
func (v *View) DisableReadLog() { v.reads, v.noReads = readLog{}, true }

// LogsReads reports whether the log of reads is on.
func (v *View) LogsReads() bool { return !v.noReads }

// Snapshot is a position in a view's staged writes. See [View.Snapshot].
type Snapshot struct {
	staged  sorted[Write]
	newCode sorted[codeBlob]
}

// Snapshot returns the current staged writes and code, for Revert. It takes
// constant time.
func (v *View) Snapshot() Snapshot { return Snapshot{v.staged.copy(), v.newCode.copy()} }

// Revert undoes all writes and code that were staged after s, which must be a snapshot of this view
// on its active root. The log of reads and Err stay, because a failed transaction in a block has
// made its reads, and a verifier makes them too. A snapshot can be used several times.
func (v *View) Revert(s Snapshot) { v.staged, v.newCode = s.staged, s.newCode }

// Get returns the value of a key, and whether it exists. Staged writes count. The key is logged as
// read.
func (v *View) Get(k Key) (value [32]byte, ok bool) { return v.read(Access{Kind: RawAccess, Key: k}) }

// Set stages a value for a raw key. k must not begin with twelve zero bytes, because Witness
// returns an error while such a key exists. Untrusted parties must not choose k: see [Verify].
func (v *View) Set(k Key, value [32]byte) { v.write(Access{Kind: RawAccess, Key: k}, value) }

// Delete stages the deletion of a value.
func (v *View) Delete(k Key) {
	v.stage(Write{Access: Access{Kind: RawAccess, Key: k}, Deleted: true})
}

// read logs an access and returns its value.
func (v *View) read(a Access) (value [32]byte, ok bool) {
	if !v.noReads {
		v.reads.add(a, v.transaction)
	}
	if w, staged := v.staged.get(Write{Access: a}); staged {
		return w.Value, !w.Deleted
	}
	value, ok, err := v.tree.Get(a.Key)
	if err != nil || v.store == nil && v.use(a.Key) == nil {
		v.fail(fmt.Errorf("%w: %s", ErrNotInWitness, a))
		return [32]byte{}, false
	}
	return value, ok
}

// use returns how the witness of a stateless view lists a key, nil if it does not.
func (v *View) use(k Key) *ubt.Use {
	at, listed := slices.BinarySearchFunc(v.shown, k, func(u ubt.Use, k Key) int { return u.Key.Compare(k) })
	if !listed {
		return nil
	}
	return &v.shown[at]
}

func (v *View) write(a Access, value [32]byte) {
	v.stage(Write{Access: a, Value: value})
}

// stage stages a write. If the key was written before with a more specific kind, it keeps that
// kind.
func (v *View) stage(w Write) {
	if w.Kind == RawAccess {
		if before, again := v.staged.get(w); again {
			w.Access = before.Access
		}
	}
	w.Transaction = v.transaction
	v.staged.put(w, writeLess)
}

func (v *View) fail(err error) {
	if v.err == nil {
		v.err = err
	}
}

// Mark returns the current position in the log of reads, for Rewind.
func (v *View) Mark() ReadMark { return v.reads.mark() }

// Rewind removes from the log all keys that were first read after m, which must be a mark of this
// view on its active root. Staged writes and Err stay. A witness proves exactly the keys in the
// log, so Rewind makes it smaller if an execution is left out of the block and its reads have no
// influence.
func (v *View) Rewind(m ReadMark) { v.reads.rewind(m) }

// Reads returns the log of reads: each key once, in the order of first access,
// since the view was opened, pinned, committed or reset.
func (v *View) Reads() []Read { return v.reads.list() }

// Writes returns the staged writes, in the order of keys.
func (v *View) Writes() []Write {
	out := make([]Write, 0, v.staged.len())
	for w := range v.staged.all {
		// The key may have been read with a more specific kind than it was written.
		if w.Kind == RawAccess {
			if r, read := v.reads.byKey.get(logged[Read]{what: Read{Access: w.Access}}); read {
				w.Access = r.what.Access
			}
		}
		out = append(out, w)
	}
	return out
}

// Root returns the root that Commit would publish, without publishing it. If Err returns an error,
// Root returns it too. On a stateless view the error wraps ErrNotInWitness if a staged write is not
// in the witness.
func (v *View) Root() (common.Hash, error) {
	tree, _, err := v.applied()
	return tree.Root(), err
}

// applied returns the tree after the staged writes, and these writes.
func (v *View) applied() (tree ubt.Tree, writes []ubt.Write, err error) {
	if v.err != nil {
		return ubt.Tree{}, nil, v.err
	}
	writes = make([]ubt.Write, 0, v.staged.len())
	for w := range v.staged.all {
		if v.store == nil && !v.mayWrite(&w) {
			return ubt.Tree{}, nil, fmt.Errorf("%w: write of %s, deleted: %v", ErrNotInWitness, w.Access, w.Deleted)
		}
		writes = append(writes, ubt.Write{Key: w.Key, Value: w.Value, Deleted: w.Deleted})
	}
	tree, err = v.tree.Apply(&hasher, writes)
	// The witness lists a write that was not staged.
	if errors.Is(err, ubt.ErrHidden) {
		err = fmt.Errorf("%w: %w", ErrNotInWitness, err)
	}
	return tree, writes, err
}

// mayWrite reports whether the witness of a stateless view lists a write.
func (v *View) mayWrite(w *Write) bool {
	u := v.use(w.Key)
	return u != nil && u.Sets != w.Deleted && u.Deletes == w.Deleted
}

// Commit publishes the staged writes as a new root and returns it. The view then reads from the new
// root, with no staged writes, an empty log of reads and no pin. Other views and the canonical root
// do not change. Each call counts as one commit of the root, which [Store.Discard] takes back; to
// learn the root only, call Root.
//
// If Commit returns an error, nothing has changed. The error is that of Err or of the disk, or it
// wraps ErrStateless, or ErrUnknownRoot if the active root was discarded.
func (v *View) Commit() (common.Hash, error) {
	if v.store == nil {
		return common.Hash{}, fmt.Errorf("%w: Commit needs a store", ErrStateless)
	}
	tree, writes, err := v.applied()
	if err != nil {
		return common.Hash{}, err
	}
	at, err := v.store.publish(v.root, tree, writes, slices.Collect(v.newCode.all))
	if err != nil {
		return common.Hash{}, err
	}
	v.unpin()
	v.stand(at)
	v.home = at
	return v.root, nil
}

// stand moves the view to a root, and drops its staged writes, its log of reads and its error.
func (v *View) stand(at place) {
	v.place = at
	v.staged, v.newCode = sorted[Write]{}, sorted[codeBlob]{}
	v.reads, v.transaction, v.err = readLog{}, 0, nil
}

// Reset drops the staged writes, the log of reads, and Err.
func (v *View) Reset() { v.stand(v.place) }

// Pin moves the view to another published root, with an empty log of reads. The store keeps that
// root until Unpin, Commit or the next Pin. The error wraps ErrStaged, ErrUnknownRoot or
// ErrStateless, and then nothing changes.
func (v *View) Pin(root common.Hash) error {
	if err := v.canMove(); err != nil {
		return err
	}
	at, err := v.store.pinned(root)
	if err != nil {
		return err
	}
	v.unpin()
	v.stand(at)
	v.pinned = true
	return nil
}

// Unpin moves the view back to the root that it had before the first Pin. The error wraps
// ErrNotPinned, ErrStaged or ErrStateless, and then nothing changes.
func (v *View) Unpin() error {
	if err := v.canMove(); err != nil {
		return err
	}
	if !v.pinned {
		return fmt.Errorf("%w: view of %s", ErrNotPinned, v.root)
	}
	v.unpin()
	v.stand(v.home)
	return nil
}

func (v *View) canMove() error {
	switch {
	case v.store == nil:
		return fmt.Errorf("%w: a stateless view cannot move to another root", ErrStateless)
	case v.staged.len() > 0:
		return fmt.Errorf("%w: %d writes on %s, want Commit or Reset first", ErrStaged, v.staged.len(), v.root)
	}
	return nil
}

func (v *View) unpin() {
	if v.pinned {
		v.pinned = false
		v.store.release(v.root)
	}
}

// All calls yield for all values of the active root, in the order of keys, until yield returns
// false. Staged writes do not count, and nothing is logged. On a stateless view it visits only the
// values in the witness.
func (v *View) All(yield func(Key, [32]byte) bool) { v.tree.All(yield) }
