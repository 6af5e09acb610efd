package statedb

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// View is an isolated view of the state: a published root, and staged writes on top
// of it that no other view sees. A View must be used by one goroutine at a time,
// but any number of views may work in parallel. A view need not be closed, but a
// pinned view should be unpinned, because its pin keeps the root in the store.
type View struct {
	store     *Store     // nil for a stateless view
	shown     []ubt.Use  // keys in the witness of a stateless view, in order
	shownCode []codeBlob // code in that witness, in the order of hashes

	place
	home        place // root to which Unpin returns
	pinned      bool
	transaction int

	staged  sorted[Write]
	newCode sorted[codeBlob] // staged
	reads   readLog
	noReads bool // the log of reads is turned off
	err     error
}

// place is a published root in the form that a view reads: with its tree and the
// published code. Both stay readable after the root was discarded, so a view never
// fails for that reason.
type place struct {
	root common.Hash
	tree ubt.Tree
	// codes has all contract code that the store had when the view moved to this root. Several
	// views share it, so none of them writes to it.
	codes sorted[codeBlob]
}

// codeBlob is the code of a contract together with its hash.
type codeBlob struct {
	hash common.Hash
	code []byte
}

func blobLess(a, b codeBlob) bool { return a.hash.Cmp(b.hash) < 0 }

func writeLess(a, b Write) bool { return a.Key.Compare(b.Key) < 0 }

func newView(s *Store, at place) *View {
	return &View{store: s, place: at, home: at}
}

// Copy returns a full copy of the view, for long-running work. The copy has the
// same root, staged writes and log of reads, and also a pin if the view is pinned.
// Later changes to one of the two are not visible in the other. Copy takes constant
// time.
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

// CopyForPhase2 returns a view of the same root without staged writes and with an
// empty log of reads, for building a bundle from blocks that were executed before.
// If the view is pinned, the copy has its own pin. CopyForPhase2 takes constant
// time.
func (v *View) CopyForPhase2() *View {
	c := *v
	c.stand(v.place)
	if c.pinned {
		v.store.repin(c.root)
	}
	return &c
}

// ActiveRoot returns the published root from which the view reads. This is the root on which the
// view was opened, or the root of the last Pin, Unpin or Commit.
func (v *View) ActiveRoot() common.Hash { return v.root }

// Err returns the first error of a read. Methods such as Account and Storage do not
// return an error: a read that fails returns zero, and Err returns the reason. On a
// stateless view it wraps ErrNotInWitness, and otherwise ErrUnknownCode. Root,
// Witness and Commit return the same error. Reset, Pin and Unpin clear it.
func (v *View) Err() error { return v.err }

// SetTransaction sets the index of the transaction that makes the following reads
// and writes. The view stores the index with each of them.
func (v *View) SetTransaction(index int) { v.transaction = index }

// DisableReadLog turns the log of reads off permanently and drops its contents,
// which saves time and memory in executions that need no witness. Witness and
// Matches then return ErrNoReadLog. Copies of the view have no log either.
func (v *View) DisableReadLog() { v.reads, v.noReads = readLog{}, true }

// LogsReads reports whether the view logs its reads. It returns false after
// DisableReadLog.
func (v *View) LogsReads() bool { return !v.noReads }

// Snapshot is the state of a view's staged writes at one moment, to which
// View.Revert can return.
type Snapshot struct {
	staged  sorted[Write]
	newCode sorted[codeBlob]
}

// Snapshot returns a snapshot of the staged writes and the staged code, to which Revert can return.
// It takes constant time.
func (v *View) Snapshot() Snapshot { return Snapshot{v.staged.copy(), v.newCode.copy()} }

// Revert undoes all writes and code that were staged after the snapshot s. s must
// be a snapshot of this view on its active root, and can be used several times.
// Revert changes neither the log of reads nor Err, because a failed transaction in
// a block has made its reads, and a verifier makes them too.
func (v *View) Revert(s Snapshot) { v.staged, v.newCode = s.staged, s.newCode }

// Get returns the value of a key and whether the key has one, including staged
// writes of this view. The key is logged as read.
func (v *View) Get(k Key) (value [32]byte, ok bool) { return v.read(Access{Kind: RawAccess, Key: k}) }

// Set stages a value for a key that the host has chosen itself. k must not begin
// with twelve zero bytes, because Witness returns an error if the state has such a
// key. Untrusted parties must not choose k; see [Verify].
func (v *View) Set(k Key, value [32]byte) { v.write(Access{Kind: RawAccess, Key: k}, value) }

// Delete stages the deletion of a value.
func (v *View) Delete(k Key) {
	v.stage(Write{Access: Access{Kind: RawAccess, Key: k}, Deleted: true})
}

// read logs an access as read and returns the value of its key.
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

// use returns how the execution used a key, according to a stateless view's
// witness.
func (v *View) use(k Key) *ubt.Use {
	at, listed := slices.BinarySearchFunc(v.shown, k, func(u ubt.Use, k Key) int { return u.Key.Compare(k) })
	// The view must not touch a key that the witness does not list.
	if !listed {
		return nil
	}
	return &v.shown[at]
}

func (v *View) write(a Access, value [32]byte) {
	v.stage(Write{Access: a, Value: value})
}

// stage adds a write, in place of an earlier write to the same key.
func (v *View) stage(w Write) {
	// If the earlier write has a specific kind, such as storage, that kind stays.
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

// Mark returns the present position in the log of reads, to which Rewind can return.
func (v *View) Mark() ReadMark { return v.reads.mark() }

// Rewind removes from the log all keys that were first read after the mark m. Call it for
// a transaction that was executed but is left out of the block, because a witness would
// otherwise prove values that only this transaction has read. m must be a mark of this
// view on its active root. Rewind does not change staged writes or Err.
func (v *View) Rewind(m ReadMark) { v.reads.rewind(m) }

// Reads returns the log of reads since the view was opened, pinned, unpinned,
// committed or reset. The log contains each key once, in the order in which the
// keys were first read.
func (v *View) Reads() []Read { return v.reads.list() }

// Writes returns the staged writes, in the order of keys.
func (v *View) Writes() []Write {
	out := make([]Write, 0, v.staged.len())
	for w := range v.staged.all {
		// A value that the host wrote by its raw key may have been read as, for example, a
		// storage slot. Then the log of reads knows its account and slot.
		if w.Kind == RawAccess {
			if r, read := v.reads.byKey.get(logged[Read]{what: Read{Access: w.Access}}); read {
				w.Access = r.what.Access
			}
		}
		out = append(out, w)
	}
	return out
}

// Root computes the root that Commit would publish, without publishing it. If Err
// returns an error, Root returns the same error. On a stateless view, the error
// wraps ErrNotInWitness if the witness does not list a staged write.
func (v *View) Root() (common.Hash, error) {
	tree, _, err := v.applied()
	return tree.Root(), err
}

// applied returns the tree after the staged writes, and these writes for package
// ubt.
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
	// The witness lists a write that the execution has not staged.
	if errors.Is(err, ubt.ErrHidden) {
		err = fmt.Errorf("%w: %w", ErrNotInWitness, err)
	}
	return tree, writes, err
}

// mayWrite reports whether a stateless view may make a write.
func (v *View) mayWrite(w *Write) bool {
	u := v.use(w.Key)
	// The witness must list the key as set or as deleted, like the write.
	return u != nil && u.Sets != w.Deleted && u.Deletes == w.Deleted
}

// Commit publishes the staged writes as a new root and returns the root. The view then reads from
// this root, and has no staged writes, an empty log of reads and no pin. Other views and the
// canonical root do not change. Each call counts as one commit of the root, which [Store.Discard]
// can take back. To compute the root without a commit, call Root.
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

// stand makes the view read from a root, as if it had just been opened on that root.
func (v *View) stand(at place) {
	v.place = at
	v.staged, v.newCode = sorted[Write]{}, sorted[codeBlob]{}
	v.reads, v.transaction, v.err = readLog{}, 0, nil
}

// Reset drops the staged writes, the log of reads, and Err.
func (v *View) Reset() { v.stand(v.place) }

// Pin moves the view to another published root, with an empty log of reads. The
// store keeps that root until Unpin, Commit or the next Pin of this view. If the
// error wraps ErrStaged, ErrUnknownRoot or ErrStateless, nothing has changed.
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

// Unpin moves the view back to the root that it had before the first Pin. If the error wraps
// ErrNotPinned, ErrStaged or ErrStateless, nothing has changed.
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

// All is an iterator over the values of the active root, in the order of their keys. It does not
// show staged writes, and it does not log the values as read. On a stateless view it visits only
// the values in the witness.
func (v *View) All(yield func(Key, [32]byte) bool) { v.tree.All(yield) }
