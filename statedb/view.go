package statedb

import (
	"bytes"
	"maps"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/btree"
)

// View is one isolated view of the state: a published root, and writes on top that nobody else sees. It belongs to one goroutine
// at a time.
type View struct {
	store *Store
	base  common.Hash
	tree  *node
	dirty *btree.BTreeG[write] // staged writes by key
	reads readLog
	code  map[common.Hash][]byte // staged code; replaced, never changed, so that clones share it
}

// btreeDegree is google/btree's usual one.
const btreeDegree = 32

func newView(s *Store, root common.Hash, tree *node) *View {
	return &View{
		store: s, base: root, tree: tree, reads: newReadLog(),
		dirty: btree.NewG(btreeDegree, func(a, b write) bool { return bytes.Compare(a.key[:], b.key[:]) < 0 }),
	}
}

// Clone returns a view with the same staged writes and the same log of reads. From then on neither sees what the other does. It
// takes constant time.
func (v *View) Clone() *View {
	c := *v
	c.dirty = v.dirty.Clone()
	c.reads = v.reads.clone()
	return &c
}

// Base returns the published root that the view stands on.
func (v *View) Base() common.Hash { return v.base }

// Get returns the value of a key, as staged or else as in the base, and whether there is one. The key is logged as read.
func (v *View) Get(k Key) (value [32]byte, ok bool) { return v.read(Access{Kind: RawAccess, Key: k}) }

// Set stages a value.
func (v *View) Set(k Key, value [32]byte) { v.dirty.ReplaceOrInsert(write{key: k, value: value}) }

// Delete stages the absence of a value. EIP-7864 does not delete: the account methods store zeros instead.
func (v *View) Delete(k Key) { v.dirty.ReplaceOrInsert(write{key: k, deleted: true}) }

// read logs an access and looks the value up.
func (v *View) read(a Access) (value [32]byte, ok bool) {
	v.reads.add(a)
	return v.peek(a.Key)
}

// peek looks a value up without logging it.
func (v *View) peek(k Key) (value [32]byte, ok bool) {
	if w, staged := v.dirty.Get(write{key: k}); staged {
		return w.value, !w.deleted
	}
	return v.tree.get(&k)
}

// Reads returns what was read, in the order of first access.
func (v *View) Reads() []Access { return v.reads.list() }

// Writes returns how many values are staged.
func (v *View) Writes() int { return v.dirty.Len() }

// Root returns the root that Commit would publish. It publishes nothing.
func (v *View) Root() common.Hash { return hashOf(v.applied()) }

// applied returns the tree with the staged writes.
func (v *View) applied() *node {
	writes := make([]write, 0, v.dirty.Len())
	v.dirty.Ascend(func(w write) bool {
		writes = append(writes, w)
		return true
	})
	return apply(&v.store.profile, v.tree, 0, writes)
}

// Commit publishes the staged writes as a new root of the store and returns it. The view then stands on that root with nothing
// staged; its log of reads goes on. No other view sees a difference and the canonical root does not move.
func (v *View) Commit() common.Hash {
	tree := v.applied()
	root := v.store.publish(v.base, tree, v.code)
	v.base, v.tree, v.code = root, tree, nil
	v.dirty.Clear(false)
	return root
}

// stageCode keeps code until Commit.
func (v *View) stageCode(h common.Hash, code []byte) {
	staged := make(map[common.Hash][]byte, len(v.code)+1)
	maps.Copy(staged, v.code)
	staged[h] = bytes.Clone(code)
	v.code = staged
}

// Walk calls f for every value of the base, without what is staged, in the order of keys, until it returns false.
func (v *View) Walk(f func(Key, [32]byte) bool) { v.tree.walk(f) }
