package statedb

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// modelNode is a root of the model, from its first commit until it is deleted.
// Deleted nodes stay as parents, so that ancestry needs no repair.
type modelNode struct {
	root    common.Hash
	parents []*modelNode
	values  map[Key][32]byte
	code    map[common.Hash]bool
	commits uint64
	pins    int
}

// model is a store without sharing, repair of links or counts of owners.
type model struct {
	live      map[common.Hash]*modelNode
	canonical *modelNode
	line      []*modelNode
	retention int
	kept      map[common.Hash]bool // code that may be kept for good
}

func newModel(retention int) *model {
	empty := &modelNode{values: map[Key][32]byte{}, code: map[common.Hash]bool{}}
	return &model{
		live: map[common.Hash]*modelNode{EmptyRoot: empty}, canonical: empty, line: []*modelNode{empty},
		retention: retention, kept: map[common.Hash]bool{},
	}
}

// above returns a node and all its ancestors, deleted ones included.
func (n *modelNode) above() map[*modelNode]bool {
	found := map[*modelNode]bool{}
	for todo := []*modelNode{n}; len(todo) > 0; {
		at := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; !found[at] {
			found[at] = true
			todo = append(todo, at.parents...)
		}
	}
	return found
}

func (m *model) commit(parent *modelNode, root common.Hash, values map[Key][32]byte, code []common.Hash) {
	if root == EmptyRoot {
		return
	}
	n := m.live[root]
	if n == nil {
		n = &modelNode{root: root, values: values, code: map[common.Hash]bool{}}
		m.live[root] = n
	}
	n.commits++
	for _, h := range code {
		n.code[h] = true
	}
	if n != parent && !slices.Contains(n.parents, parent) {
		n.parents = append(n.parents, parent)
	}
}

func (m *model) delete(gone []*modelNode) {
	below := m.canonical.above()
	for _, n := range gone {
		delete(m.live, n.root)
		m.line = slices.DeleteFunc(m.line, func(o *modelNode) bool { return o == n })
		if below[n] {
			for a := range n.above() {
				maps.Copy(m.kept, a.code)
			}
		}
	}
}

func (m *model) discard(n *modelNode) error {
	last := n.commits <= 1
	switch {
	case last && (n == m.canonical || n.pins > 0):
		return ErrInUse
	case n.root == EmptyRoot:
	case last:
		m.delete([]*modelNode{n})
	default:
		n.commits--
	}
	return nil
}

func (m *model) setCanonical(n *modelNode) {
	if n == m.canonical {
		return
	}
	m.canonical = n
	if m.retention == KeepAll {
		m.line = []*modelNode{n}
		return
	}
	m.line = append(slices.DeleteFunc(slices.Clone(m.line), func(o *modelNode) bool { return o == n }), n)
	if len(m.line) <= m.retention+1 {
		return
	}
	m.line = m.line[len(m.line)-m.retention-1:]
	onBranch := n.above()
	var gone []*modelNode
	for _, o := range m.live {
		above := o.above()
		stays := o.root == EmptyRoot || o.pins > 0 || slices.Contains(m.line, o)
		for i, l := range m.line {
			stays = stays || (i == 0 || onBranch[l]) && above[l]
		}
		if !stays {
			gone = append(gone, o)
		}
	}
	m.delete(gone)
}

// check compares the store with the model.
func (m *model) check(t require.TestingT, s *Store) {
	require.Equal(t, m.canonical.root, s.Canonical())
	var line []common.Hash
	for _, n := range m.line {
		line = append(line, n.root)
	}
	require.Equal(t, line, s.line)
	require.Len(t, m.live, s.Roots())
	needed := map[common.Hash]bool{}
	for root, n := range m.live {
		require.True(t, s.Has(root))
		require.Equal(t, n.commits, s.roots[root].commits)
		v := viewOf(t, s, root)
		require.Equal(t, n.values, maps.Collect(v.All))
		for a := range n.above() {
			maps.Copy(needed, a.code)
		}
		for h := range needed {
			v.Code(h)
			require.NoError(t, v.Err())
		}
	}
	for b := range s.code.blobs.all {
		require.True(t, needed[b.hash] || m.kept[b.hash], "code of discarded roots stays")
	}
}

// modelStep draws a step and makes it on the store and the model.
func (m *model) step(t *rapid.T, s *Store) {
	known := slices.SortedFunc(maps.Keys(m.live), common.Hash.Cmp)
	n := m.live[rapid.SampledFrom(known).Draw(t, "root")]
	switch rapid.IntRange(0, 6).Draw(t, "step") {
	case 0:
		require.NoError(t, s.SetCanonical(n.root))
		m.setCanonical(n)
	case 1:
		want, err := m.discard(n), s.Discard(n.root)
		require.True(t, errors.Is(err, want), "%v, want %v", err, want)
	case 2:
		if n.pins == 0 {
			require.NoError(t, s.Pin(n.root))
			n.pins++
		} else {
			require.NoError(t, s.Unpin(n.root))
			n.pins--
		}
	default:
		v := viewOf(t, s, n.root)
		var code []common.Hash
		k := Key{rapid.Byte().Draw(t, "key") % 3}
		if rapid.Bool().Draw(t, "code") {
			h, err := v.SetCode(common.Address{k[0]}, []byte{k[0]})
			require.NoError(t, err)
			code = append(code, h)
			if rapid.Bool().Draw(t, "without a trace in the tree") {
				v.Delete(codeChunkKey(common.Address{k[0]}, 0))
			}
		}
		if n.values[k] == ([32]byte{}) {
			v.Set(k, [32]byte{1})
		} else {
			v.Delete(k)
		}
		values := maps.Clone(n.values)
		for _, w := range v.Writes() {
			if values[w.Key] = w.Value; w.Deleted {
				delete(values, w.Key)
			}
		}
		m.commit(n, commit(t, v), values, code)
	}
}

// Random commits, discards, pins and moves of the canonical root lead to the
// same roots, values and code as in a model without shortcuts, also if the
// store is opened again in between.
func TestStoreIsAsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		retention := rapid.SampledFrom([]int{KeepAll, 1, 2, 3}).Draw(t, "retention")
		disk := newMemoryDisk()
		s, m := reopen(t, disk, retention), newModel(retention)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			m.step(t, s)
			m.check(t, s)
			if rapid.IntRange(0, 4).Draw(t, "restart") == 0 {
				before := summarize(t, s)
				disk = disk.restarted()
				s = reopen(t, disk, retention)
				require.Equal(t, before, summarize(t, s))
				for _, n := range m.live {
					n.pins = 0
				}
			}
		}
	})
}
