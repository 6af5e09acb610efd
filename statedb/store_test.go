package statedb

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
)

// S3: only the store moves the canonical root, and it discards nothing that is in use.
func TestS3Guarded(t *testing.T) {
	store := NewStore()
	v := open(t, store)
	v.Set(Key{1}, [32]byte{1})
	root := commit(t, v)
	require.Equal(t, EmptyRoot, store.Canonical())
	require.ErrorIs(t, store.SetCanonical(common.Hash{5}), ErrUnknownRoot)
	require.NoError(t, store.SetCanonical(root))
	require.ErrorIs(t, store.Discard(root), ErrInUse)
	require.NoError(t, store.Pin(root))
	require.NoError(t, store.SetCanonical(EmptyRoot))
	require.ErrorIs(t, store.Discard(root), ErrInUse)
	require.NoError(t, store.Unpin(root))
	require.ErrorIs(t, store.Unpin(root), ErrNotPinned)
	parent, err := store.Parent(root)
	require.NoError(t, err)
	require.Equal(t, EmptyRoot, parent)
	require.NoError(t, store.Discard(root))
	_, err = store.View(root)
	require.ErrorIs(t, err, ErrUnknownRoot)
	require.ErrorIs(t, store.Unpin(root), ErrUnknownRoot)
	value, _ := v.Get(Key{1})
	require.Equal(t, [32]byte{1}, value, "an open view goes on")
	require.ErrorIs(t, store.Discard(EmptyRoot), ErrInUse)
	require.True(t, store.Has(EmptyRoot), "the empty root is never forgotten")
}

// child commits one write on a root.
func child(t require.TestingT, s *Store, parent common.Hash, value byte) common.Hash {
	v := viewOf(t, s, parent)
	v.Set(Key{value}, [32]byte{value, 1})
	return commit(t, v)
}

func parentOf(t require.TestingT, s *Store, root common.Hash) common.Hash {
	parent, err := s.Parent(root)
	require.NoError(t, err)
	return parent
}

// Retention limits the line of canonical roots. Roots that do not descend from
// its oldest root are discarded with the older ones.
func TestRetention(t *testing.T) {
	counts := map[string]int{}
	s, err := Open(Config{Retention: 2, Metrics: jamq.Metrics{Count: func(counter, _ string, n int) { counts[counter] += n }}})
	require.NoError(t, err)
	a := child(t, s, EmptyRoot, 1)
	b := child(t, s, a, 2)
	fork, pinned := child(t, s, a, 10), child(t, s, a, 11)
	later := child(t, s, fork, 12)
	require.NoError(t, s.Pin(pinned))
	c := child(t, s, b, 3)
	d := child(t, s, c, 4)
	flight := child(t, s, d, 5)
	for _, root := range []common.Hash{a, b, c} {
		require.NoError(t, s.SetCanonical(root))
	}
	require.True(t, s.Has(fork), "the oldest that stays is its parent")
	require.NoError(t, s.SetCanonical(d))
	for name, gone := range map[string]common.Hash{"a": a, "its fork": fork, "what is on the fork": later} {
		require.False(t, s.Has(gone), name)
	}
	for name, there := range map[string]common.Hash{"b": b, "c": c, "d": d, "pinned": pinned, "in flight": flight} {
		require.True(t, s.Has(there), name)
	}
	require.Equal(t, EmptyRoot, parentOf(t, s, pinned), "its parent is gone")
	require.NoError(t, s.Unpin(pinned))
	require.NoError(t, s.SetCanonical(flight))
	require.False(t, s.Has(pinned), "unpinned, and found by the next move")
	require.Equal(t, 4, s.Roots(), "c, d, flight and the empty one")
	require.Equal(t, map[string]int{CountCommitted: 8, CountCanonical: 5, CountDiscarded: 5}, counts)
}

// A host that configures nothing has a bounded number of roots.
func TestDefaultRetention(t *testing.T) {
	s := NewStore()
	root := EmptyRoot
	for i := range DefaultRetention + 20 {
		v := viewOf(t, s, root)
		v.Set(Key{1}, [32]byte{byte(i), byte(i >> 8), 1})
		root = commit(t, v)
		require.NoError(t, s.SetCanonical(root))
	}
	require.Equal(t, DefaultRetention+2, s.Roots(), "the canonical root, those before it, and the empty root")
}

// Blocks in different orders can lead to the same root. The root stays as long
// as one of its parents does, whichever came first, and through a restart.
func TestRetentionOfTwoParents(t *testing.T) {
	for name, first := range map[string]int{"first on the fork": 0, "first on the branch that wins": 1} {
		t.Run(name, func(t *testing.T) {
			disk := newMemoryDisk()
			s := reopen(t, disk, 1)
			a := child(t, s, EmptyRoot, 1)
			require.NoError(t, s.SetCanonical(a))
			fork, wins := child(t, s, child(t, s, a, 3), 4), child(t, s, a, 2)
			above := child(t, s, wins, 4)
			var ahead common.Hash
			for i := range 2 {
				if i == first {
					ahead = child(t, s, fork, 2)
				} else {
					ahead = child(t, s, above, 3)
				}
			}
			later := child(t, s, ahead, 9)
			require.Len(t, s.roots[ahead].parents, 2)
			disk = disk.restarted()
			s = reopen(t, disk, 1)
			require.NoError(t, s.SetCanonical(wins))
			require.NoError(t, s.SetCanonical(above))
			require.False(t, s.Has(fork))
			require.True(t, s.Has(ahead))
			require.True(t, s.Has(later))
			want := []common.Hash{EmptyRoot, above} // the fork is gone, and all below it
			if first == 1 {
				slices.Reverse(want)
			}
			s = reopen(t, disk.restarted(), 1)
			require.Equal(t, want, s.roots[ahead].parents)
			require.Equal(t, want[0], parentOf(t, s, ahead))
			require.NoError(t, s.SetCanonical(later))
		})
	}
}

// A state that comes back is no descendant of itself that would keep it.
func TestStateComesBack(t *testing.T) {
	disk := newMemoryDisk()
	s := reopen(t, disk, 1)
	a := child(t, s, EmptyRoot, 1)
	b := child(t, s, a, 2)
	v := viewOf(t, s, b)
	v.Delete(Key{2})
	require.Equal(t, a, commit(t, v))
	require.Equal(t, EmptyRoot, parentOf(t, s, a))
	s = reopen(t, disk.restarted(), 1)
	require.NoError(t, s.SetCanonical(a))
	require.NoError(t, s.Discard(b))
	require.Equal(t, []common.Hash{EmptyRoot}, s.roots[a].parents)
	require.Equal(t, EmptyRoot, parentOf(t, s, EmptyRoot))
	v = viewOf(t, s, a)
	v.Delete(Key{1})
	require.Equal(t, EmptyRoot, commit(t, v))
	require.Empty(t, s.roots[EmptyRoot].parents)
}

// A root in flight keeps its ancestors when one between is discarded. A view of
// a discarded root can read, but not commit.
func TestDiscardBetween(t *testing.T) {
	s := NewStore()
	a := child(t, s, EmptyRoot, 1)
	b := child(t, s, a, 2)
	c := child(t, s, b, 3)
	v := viewOf(t, s, b)
	require.NoError(t, s.Discard(b))
	require.Equal(t, a, parentOf(t, s, c))
	v.Set(Key{9}, [32]byte{9})
	_, err := v.Commit()
	require.ErrorIs(t, err, ErrUnknownRoot)
	require.Len(t, v.Writes(), 1, "a refused call changes nothing")
	require.Equal(t, 3, s.Roots())
	b = child(t, s, a, 2)
	require.NotEqual(t, b, commit(t, v), "published again")
}

// A block on a root that retention has dropped is refused. It does not become a
// child of the canonical root.
func TestCommitOnRetiredRoot(t *testing.T) {
	s := reopen(t, newMemoryDisk(), 1)
	a := child(t, s, EmptyRoot, 1)
	late := viewOf(t, s, a)
	late.Set(Key{7}, [32]byte{7})
	for i := range byte(3) {
		a = child(t, s, a, 10+i)
		require.NoError(t, s.SetCanonical(a))
	}
	_, err := late.Commit()
	require.ErrorIs(t, err, ErrUnknownRoot)
}

// Two versions of a block lead to the same root. Discarding one of them leaves
// the root to the other, through a restart too.
func TestDiscardOneOfTwoVersions(t *testing.T) {
	disk := newMemoryDisk()
	s := reopen(t, disk, KeepAll)
	a := child(t, s, EmptyRoot, 1)
	require.Equal(t, a, child(t, s, EmptyRoot, 1))
	empty := viewOf(t, s, a) // a block without effect is a version as well
	require.Equal(t, a, commit(t, empty))
	require.NoError(t, s.Discard(a))
	s = reopen(t, disk.restarted(), KeepAll)
	require.NoError(t, s.Pin(a))
	require.NoError(t, s.Discard(a), "a pin keeps the last commit only")
	require.ErrorIs(t, s.Discard(a), ErrInUse)
	require.NoError(t, s.Unpin(a))
	require.NoError(t, s.SetCanonical(a))
	require.ErrorIs(t, s.Discard(a), ErrInUse)
	require.NoError(t, s.SetCanonical(EmptyRoot))
	require.NoError(t, s.Discard(a))
	require.ErrorIs(t, s.Discard(a), ErrUnknownRoot)
}

func TestConfigValidate(t *testing.T) {
	_, err := Open(Config{Retention: -2})
	require.ErrorIs(t, err, ErrConfig)
	require.NoError(t, new(Config).Validate())
}

// Store.Unpin takes back what Store.Pin gave, and never a view's pin.
func TestViewsPinIsItsOwn(t *testing.T) {
	s := NewStore()
	root := child(t, s, EmptyRoot, 1)
	v := open(t, s)
	require.NoError(t, v.Pin(root))
	require.ErrorIs(t, s.Unpin(root), ErrNotPinned)
	require.NoError(t, s.Pin(root))
	require.NoError(t, s.Unpin(root))
	require.ErrorIs(t, s.Discard(root), ErrInUse)
	c := v.Copy()
	require.NoError(t, v.Unpin())
	require.ErrorIs(t, s.Discard(root), ErrInUse)
	require.NoError(t, c.Unpin())
	require.NoError(t, s.Discard(root))
}

// A disk that fails at the first write leaves no store.
func TestOpenOnFailingDisk(t *testing.T) {
	disk := newMemoryDisk()
	disk.left = 0
	s, err := Open(Config{Disk: disk})
	require.ErrorIs(t, err, ErrDisk)
	require.Nil(t, s)
}

// On a clone the methods that move or discard the node's state panic or, with
// the option, return an error, and change nothing.
func TestFacade(t *testing.T) {
	s := NewStore()
	own, err := s.Facade()
	require.NoError(t, err)
	own.Set(Key{1}, [32]byte{1})
	first, err := own.CommitAsCanonical()
	require.NoError(t, err)
	require.Equal(t, first, s.Canonical())
	own.Set(Key{2}, [32]byte{1})
	second, err := own.CommitAsCanonical()
	require.NoError(t, err)
	require.NoError(t, own.SetCanonicalRoot(first))
	require.NoError(t, own.DiscardTree(second))
	require.Equal(t, second, own.ActiveRoot())
	own.Set(Key{3}, [32]byte{1})
	require.NoError(t, own.ResetTrie())
	require.Equal(t, first, own.ActiveRoot())
	require.Empty(t, own.Writes())

	polite, err := s.Facade(CloneErrors())
	require.NoError(t, err)
	calls := map[string]func(*Facade) error{
		"SetCanonicalRoot":  func(f *Facade) error { return f.SetCanonicalRoot(EmptyRoot) },
		"CommitAsCanonical": func(f *Facade) error { _, err := f.CommitAsCanonical(); return err },
		"DiscardTree":       func(f *Facade) error { return f.DiscardTree(first) },
		"ResetTrie":         func(f *Facade) error { return f.ResetTrie() },
	}
	for name, call := range calls {
		for _, copied := range []func(*Facade) *Facade{(*Facade).Copy, (*Facade).CopyForPhase2} {
			clone := copied(polite)
			clone.Set(Key{7}, [32]byte{7})
			require.ErrorIs(t, call(clone), ErrClone, name)
			require.ErrorIs(t, call(clone.Copy()), ErrClone, "a clone of a clone")
			require.Panics(t, func() { _ = call(copied(own)) }, name)
			require.Len(t, clone.Writes(), 1)
		}
	}
	require.Equal(t, first, s.Canonical())
	require.Equal(t, 2, s.Roots())
}

// After a reorganization, blocks in flight on the canonical root stay, even if
// the line's oldest root is on the abandoned branch.
func TestRetentionKeepsWhatIsInFlightOnTheCanonicalRoot(t *testing.T) {
	s, err := Open(Config{Retention: 4})
	require.NoError(t, err)
	g := child(t, s, EmptyRoot, 1)
	x1 := child(t, s, g, 2)
	require.NoError(t, s.SetCanonical(g))
	require.NoError(t, s.SetCanonical(x1))
	// The network takes the other branch.
	tip := child(t, s, g, 3)
	require.NoError(t, s.SetCanonical(tip))
	for i := range byte(6) {
		next := child(t, s, tip, 10+2*i)
		ahead := child(t, s, next, 11+2*i) // built while next is being agreed on
		require.NoError(t, s.SetCanonical(next))
		require.True(t, s.Has(ahead), "move %d: a child of the canonical root was discarded", i)
		tip = next
	}
}

func TestRetentionReorgRetention1(t *testing.T) {
	s, err := Open(Config{Retention: 1})
	require.NoError(t, err)
	g := child(t, s, EmptyRoot, 1)
	x1 := child(t, s, g, 2)
	y1 := child(t, s, g, 3)
	y2 := child(t, s, y1, 4)
	require.NoError(t, s.SetCanonical(g))
	require.NoError(t, s.SetCanonical(x1))
	require.NoError(t, s.SetCanonical(y1))
	require.NoError(t, s.SetCanonical(y2))
}
