package statedb

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/statedb/ubt"
)

// Witness proves everything that a view has read and written. With a witness, a
// verifier that has no state can check the values that were read at the old root,
// and compute the new root. [View.Witness] makes a witness, [ParseWitness] decodes
// it, and [Verify] and [NewStateless] check it. The contents must not be trusted
// before that check.
type Witness struct {
	// Entries are the keys that were read or written, each once, in the order of the keys.
	Entries []Entry
	// Code has the contract codes that were read, each once, in the order of their hashes.
	// Each belongs to an account in Entries, whose code hash is the hash of the code.
	Code [][]byte
	// Proof is the multiproof over all keys.
	Proof *ubt.Proof
}

// Entry is a key in a witness, together with its use by the execution: the value was set, deleted,
// or only read.
type Entry struct {
	Access
	// Set means that a value was written. Deleted is false then.
	Set bool
	// Deleted means that the value was removed. Set is false then.
	Deleted bool
}

// Entries returns the logged reads and the staged writes in the order of the keys.
// A witness that is made now would have exactly these entries.
func (v *View) Entries() []Entry {
	byKey := make(map[Key]Entry, v.reads.byKey.len()+v.staged.len())
	for r := range v.reads.byKey.all {
		byKey[r.what.Key] = Entry{Access: r.what.Access}
	}
	for w := range v.staged.all {
		e, read := byKey[w.Key]
		if !read || e.Kind == RawAccess {
			e.Access = w.Access
		}
		e.Set, e.Deleted = !w.Deleted, w.Deleted
		byKey[w.Key] = e
	}
	return slices.SortedFunc(maps.Values(byKey), func(a, b Entry) int { return a.Key.Compare(b.Key) })
}

// Witness returns a proof of all logged reads and staged writes against the active root. Call it
// before Commit, because Commit moves the active root. The error is that of Err, or it wraps one of
// these:
//
//   - ErrUnboundCode: code was read by its hash, but no account with this code hash.
//   - ErrWitness: a raw key begins with twelve zero bytes, which Verify would refuse.
//   - ErrStateless or ErrNoReadLog: the view has no store or no log of reads.
func (v *View) Witness() (*Witness, error) {
	switch {
	case v.err != nil:
		return nil, v.err
	case v.store == nil:
		return nil, fmt.Errorf("%w: Witness needs a store", ErrStateless)
	case v.noReads:
		return nil, fmt.Errorf("%w: a witness lists the reads", ErrNoReadLog)
	}
	w := &Witness{Entries: v.Entries()}
	bound := w.codeHashes(v.tree)
	for l := range v.reads.code.all {
		if _, is := slices.BinarySearchFunc(bound, l.what, common.Hash.Cmp); !is {
			return nil, fmt.Errorf("%w: code %s", ErrUnboundCode, l.what)
		}
		blob, _ := v.codes.get(codeBlob{hash: l.what})
		w.Code = append(w.Code, bytes.Clone(blob.code))
	}
	var err error
	if w.Proof, err = v.tree.Prove(&hasher, w.uses()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	return w, nil
}

// codeHashes returns the code hashes of all accounts in the entries, ascending.
func (w *Witness) codeHashes(tree ubt.Tree) []common.Hash {
	n := 0
	for i := range w.Entries {
		if w.Entries[i].Kind == CodeHashAccess {
			n++
		}
	}
	hashes := make([]common.Hash, 0, n)
	for i := range w.Entries {
		if e := &w.Entries[i]; e.Kind == CodeHashAccess {
			if h, ok, err := tree.Get(e.Key); ok && err == nil {
				hashes = append(hashes, h)
			}
		}
	}
	slices.SortFunc(hashes, common.Hash.Cmp)
	return hashes
}

// uses returns the entries in the form that package ubt needs for proofs.
func (w *Witness) uses() []ubt.Use {
	uses := make([]ubt.Use, len(w.Entries))
	for i := range w.Entries {
		e := &w.Entries[i]
		uses[i] = ubt.Use{Key: e.Key, Sets: e.Set, Deletes: e.Deleted}
	}
	return uses
}

// Verify checks a witness against the root before the execution, without any state,
// and returns the root after the writes. The writes must be exactly those that the
// witness lists, with their metadata, in any order. If the error wraps ErrWitness,
// nothing is proved.
//
// Verify proves the values that were read, but not that the execution has read
// them. A verifier that also executes should use [NewStateless].
//
// Three restrictions follow from the fact that leaves, stems and inner nodes are
// hashed alike:
//
//   - Untrusted parties must not choose raw keys. A party that chooses a stem can make it read as
//     an inner node, and then the root has two meanings.
//   - Raw keys must not begin with twelve zero bytes. Proofs that contain such a stem are refused.
//   - Untrusted parties must not choose slots of the zero address, whose stems are hashes of data
//     that begins with a zero hash. Without code that address has no slots.
func Verify(w *Witness, preRoot common.Hash, writes []Write) (postRoot common.Hash, err error) {
	tree, _, err := w.open(preRoot)
	if err != nil {
		return common.Hash{}, err
	}
	changes, err := w.changes(writes)
	if err != nil {
		return common.Hash{}, err
	}
	after, err := tree.Apply(&hasher, changes)
	if err != nil {
		return common.Hash{}, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	return after.Root(), nil
}

// open checks a witness, except its writes, against the root before the execution.
func (w *Witness) open(preRoot common.Hash) (ubt.Tree, []ubt.Use, error) {
	if w == nil || w.Proof == nil {
		return ubt.Tree{}, nil, fmt.Errorf("%w: no proof", ErrWitness)
	}
	for i := range w.Entries {
		if err := w.Entries[i].check(); err != nil {
			return ubt.Tree{}, nil, err
		}
	}
	uses := w.uses()
	tree, err := ubt.Open(&hasher, w.Proof, uses)
	if err != nil {
		return ubt.Tree{}, nil, fmt.Errorf("%w: %w", ErrWitness, err)
	}
	if tree.Root() != preRoot {
		return ubt.Tree{}, nil, fmt.Errorf("%w: root is %s, want %s", ErrWitness, tree.Root(), preRoot)
	}
	return tree, uses, w.checkCode(tree)
}

// check returns an error if the entry's fields contradict each other.
func (e *Entry) check() error {
	switch {
	case e.Kind > CodeChunkAccess:
		return fmt.Errorf("%w: %s", ErrWitness, e.Kind)
	case e.Access != e.plain().derive():
		return fmt.Errorf("%w: %s does not have the key %x", ErrWitness, e.Access, e.Key)
	case e.Set && e.Deleted:
		return fmt.Errorf("%w: %s is both set and deleted", ErrWitness, e.Access)
	}
	return nil
}

// checkCode checks that each code in a witness belongs to an account in its
// entries.
func (w *Witness) checkCode(tree ubt.Tree) error {
	if len(w.Code) == 0 {
		return nil
	}
	bound := w.codeHashes(tree)
	var last common.Hash
	for i, code := range w.Code {
		h := keccak(code)
		_, isBound := slices.BinarySearchFunc(bound, h, common.Hash.Cmp)
		switch {
		// Without such an account, nothing proves that the code is in the state.
		case len(code) == 0 || !isBound:
			return fmt.Errorf("%w: code %s belongs to no account in the witness", ErrWitness, h)
		case i > 0 && last.Cmp(h) >= 0:
			return fmt.Errorf("%w: code %s after %s, want ascending order", ErrWitness, h, last)
		}
		last = h
	}
	return nil
}

// changes checks that the writes are those that the entries list, and returns them.
func (w *Witness) changes(writes []Write) ([]ubt.Write, error) {
	listed := 0
	for i := range w.Entries {
		if w.Entries[i].writes() {
			listed++
		}
	}
	if listed != len(writes) {
		return nil, fmt.Errorf("%w: %d writes, want %d", ErrWitness, len(writes), listed)
	}
	order := make([]int, len(writes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return writes[a].Key.Compare(writes[b].Key) })
	next := 0
	for i := range w.Entries {
		if e := &w.Entries[i]; e.writes() {
			if err := e.checkWrite(&writes[order[next]]); err != nil {
				return nil, err
			}
			next++
		}
	}
	// A forged witness is refused above, before memory for the result is allocated.
	changes := make([]ubt.Write, len(writes))
	for i, at := range order {
		changes[i] = ubt.Write{Key: writes[at].Key, Value: writes[at].Value, Deleted: writes[at].Deleted}
	}
	return changes, nil
}

// writes reports whether the execution wrote the entry.
func (e *Entry) writes() bool { return e.Set || e.Deleted }

// checkWrite returns an error if a write differs from the write that the entry lists.
func (e *Entry) checkWrite(got *Write) error {
	switch {
	case got.Access != got.plain().derive():
		return fmt.Errorf("%w: write of %s does not have the key %x", ErrWitness, got.Access, got.Key)
	case got.Access != e.Access:
		return fmt.Errorf("%w: write of %s, want %s", ErrWitness, got.Access, e.Access)
	case got.Deleted != e.Deleted || got.Deleted && got.Value != [32]byte{}:
		return fmt.Errorf("%w: write of %s has Deleted %v, want %v, and a zero value if deleted", ErrWitness, e.Access, got.Deleted, e.Deleted)
	}
	return nil
}

// Matches returns an error that wraps ErrWitness if the view has not read and staged exactly the
// entries and the code of w. After an execution on [NewStateless], success proves that the witness
// contains nothing superfluous. The error wraps ErrNoReadLog if the log of reads is off.
func (v *View) Matches(w *Witness) error {
	switch {
	case w == nil:
		return fmt.Errorf("%w: witness is nil", ErrWitness)
	case v.noReads:
		return fmt.Errorf("%w: a witness lists the reads", ErrNoReadLog)
	}
	entries := v.Entries()
	for i := range min(len(entries), len(w.Entries)) {
		if got, want := entries[i], w.Entries[i]; got != want {
			return fmt.Errorf("%w: witness entry is %+v, want %+v", ErrWitness, want, got)
		}
	}
	if len(entries) != len(w.Entries) || v.reads.code.len() != len(w.Code) {
		return fmt.Errorf("%w: witness has %d keys and %d codes, want %d and %d", ErrWitness, len(w.Entries), len(w.Code), len(entries), v.reads.code.len())
	}
	for _, code := range w.Code {
		if h := keccak(code); !v.reads.hasCode(h) {
			return fmt.Errorf("%w: witness has code %s, which was not read", ErrWitness, h)
		}
	}
	return v.err
}

// NewStateless checks a witness against a root and returns a view that needs no
// state except the witness. A verifier executes on this view as on any other view.
// If the execution reads a key or a code that the witness does not list, the read
// returns zero and sets [View.Err], even if the proof happens to contain the value.
// Root returns the root after the writes; see also [View.Matches]. The error wraps
// ErrWitness.
func NewStateless(w *Witness, preRoot common.Hash) (*View, error) {
	tree, shown, err := w.open(preRoot)
	if err != nil {
		return nil, err
	}
	code := make([]codeBlob, len(w.Code))
	for i := range code {
		code[i] = codeBlob{keccak(w.Code[i]), bytes.Clone(w.Code[i])}
	}
	return &View{shown: shown, shownCode: code, place: place{root: preRoot, tree: tree}}, nil
}
