package statedb

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// open returns a view of the canonical root.
func open(t require.TestingT, s *Store) *View { return viewOf(t, s, s.Canonical()) }

func viewOf(t require.TestingT, s *Store, root common.Hash) *View {
	v, err := s.View(root)
	require.NoError(t, err)
	return v
}

func commit(t require.TestingT, v *View) common.Hash {
	root, err := v.Commit()
	require.NoError(t, err)
	return root
}

func rootOf(t require.TestingT, v *View) common.Hash {
	root, err := v.Root()
	require.NoError(t, err)
	return root
}

// S1: no view sees what another one does, copies included.
func TestS1Isolated(t *testing.T) {
	store := NewStore()
	a, slot := common.Address{1}, common.Hash{9}
	one := open(t, store)
	one.SetStorage(a, slot, common.Hash{1})
	two := one.Copy()
	three := one.CopyForPhase2()
	two.SetStorage(a, slot, common.Hash{2})
	two.Storage(a, common.Hash{7})
	require.Equal(t, common.Hash{1}, one.Storage(a, slot))
	require.Equal(t, common.Hash{2}, two.Storage(a, slot))
	require.Equal(t, common.Hash{}, three.Storage(a, slot))
	require.Len(t, one.Reads(), 1)
	require.Len(t, two.Reads(), 2)
	require.Len(t, three.Reads(), 1)

	root := commit(t, two)
	require.Equal(t, common.Hash{1}, one.Storage(a, slot))
	require.Equal(t, common.Hash{}, open(t, store).Storage(a, slot))
	require.Equal(t, common.Hash{2}, viewOf(t, store, root).Storage(a, slot))
}

// S2: the contents of a published root never change.
func TestS2Immutable(t *testing.T) {
	store := NewStore()
	v := open(t, store)
	v.Set(Key{1}, [32]byte{1})
	root := commit(t, v)
	for i := range byte(50) {
		v.Set(Key{1, i}, [32]byte{i, 1})
		v.Set(Key{1}, [32]byte{i, 2})
		commit(t, v)
	}
	again := viewOf(t, store, root)
	value, ok := again.Get(Key{1})
	require.True(t, ok)
	require.Equal(t, [32]byte{1}, value)
	require.Equal(t, root, rootOf(t, again))
}

func TestAccounts(t *testing.T) {
	v := open(t, NewStore())
	a := common.Address{7}
	require.False(t, v.Account(a).Exists)
	code := bytes.Repeat([]byte{0x7f, 1, 2, 3}, 100)
	codeHash, err := v.SetCode(a, code)
	require.NoError(t, err)
	want := Account{Exists: true, Nonce: 1 << 60, Balance: new(uint256.Int).Lsh(uint256.NewInt(1), 127), CodeHash: codeHash, CodeSize: len(code)}
	require.NoError(t, v.SetAccount(a, want))
	require.Equal(t, want, v.Account(a))
	require.Equal(t, code, v.Code(codeHash))
	commit(t, v)
	require.Equal(t, want, v.Account(a))
	require.Equal(t, code, v.Copy().Code(codeHash))

	before := rootOf(t, v)
	require.ErrorIs(t, v.SetAccount(a, Account{Balance: new(uint256.Int).Lsh(uint256.NewInt(1), 128)}), ErrBalanceRange)
	require.ErrorIs(t, v.SetAccount(a, Account{CodeSize: 1 << 24}), ErrCodeSize)
	require.Equal(t, before, rootOf(t, v))
	v.DeleteAccount(a)
	require.False(t, v.Account(a).Exists)
}

// The log has each key once, in the order of first access, with its metadata
// and the transaction.
func TestReadLog(t *testing.T) {
	v := open(t, NewStore())
	a := common.Address{7}
	v.Storage(a, common.Hash{2})
	v.SetTransaction(3)
	v.Account(a)
	v.Storage(a, common.Hash{1})
	v.SetTransaction(4)
	v.Storage(a, common.Hash{2})
	reads := v.Reads()
	require.Len(t, reads, 4)
	require.Equal(t, Read{Access{Kind: StorageAccess, Key: storageKey(a, common.Hash{2}), Address: a, Slot: common.Hash{2}}, 0}, reads[0])
	require.Equal(t, Read{Access{Kind: BasicDataAccess, Key: basicDataKey(a), Address: a}, 3}, reads[1])
	require.Equal(t, Read{Access{Kind: CodeHashAccess, Key: codeHashKey(a), Address: a}, 3}, reads[2])
	require.Equal(t, common.Hash{1}, reads[3].Slot)
	commit(t, v)
	require.Empty(t, v.Reads())
}

func TestPins(t *testing.T) {
	store := NewStore()
	v := open(t, store)
	var roots []common.Hash
	for i := range byte(3) {
		v.Set(Key{1}, [32]byte{i, 1})
		roots = append(roots, commit(t, v))
	}
	value := func(v *View) byte { b, _ := v.Get(Key{1}); return b[0] }

	require.ErrorIs(t, v.Unpin(), ErrNotPinned)
	require.ErrorIs(t, v.Pin(common.Hash{1}), ErrUnknownRoot)
	require.NoError(t, v.Pin(roots[0]))
	require.Equal(t, roots[0], v.ActiveRoot())
	require.Equal(t, byte(0), value(v))
	one, two := v.Copy(), v.CopyForPhase2()
	require.NoError(t, v.Pin(roots[1]))
	require.Equal(t, byte(1), value(v))

	v.Set(Key{2}, [32]byte{1})
	require.ErrorIs(t, v.Pin(roots[2]), ErrStaged)
	require.ErrorIs(t, v.Unpin(), ErrStaged)
	v.Reset()
	require.NoError(t, v.Unpin())
	require.Equal(t, roots[2], v.ActiveRoot())
	require.NoError(t, store.Discard(roots[1]))

	require.ErrorIs(t, store.Discard(roots[0]), ErrInUse, "pinned by both copies")
	require.NoError(t, one.Unpin())
	require.Equal(t, byte(2), value(one))
	require.ErrorIs(t, store.Discard(roots[0]), ErrInUse)
	two.Set(Key{9}, [32]byte{9})
	commit(t, two) // lets go of the pin
	require.ErrorIs(t, two.Unpin(), ErrNotPinned)
	require.NoError(t, store.Discard(roots[0]))
}

// Sixty-four views run in parallel, for the race detector. Each reads, writes,
// is copied, proves, commits and pins, and ends at the same root as alone.
func TestParallelViews(t *testing.T) {
	store := NewStore()
	base := open(t, store)
	for i := range 300 {
		base.Set(Key(sha256.Sum256([]byte{byte(i), byte(i >> 8)})), [32]byte{1})
	}
	root := commit(t, base)
	work := func(i int) common.Hash {
		v := viewOf(t, store, root)
		for j := range 100 {
			k := Key(sha256.Sum256([]byte{byte(j), byte(i)}))
			v.Get(k)
			v.Set(k, [32]byte{byte(i), 1})
		}
		c := v.Copy()
		c.Set(Key{1}, [32]byte{1})
		w, err := v.Witness()
		require.NoError(t, err)
		post, err := Verify(w, root, v.Writes())
		require.NoError(t, err)
		require.Equal(t, rootOf(t, v), post)
		commit(t, c)
		got := commit(t, v)
		require.NoError(t, v.Pin(root))
		require.NoError(t, v.CopyForPhase2().Unpin())
		require.NoError(t, v.Unpin())
		require.NoError(t, store.SetCanonical(got))
		return got
	}
	var group sync.WaitGroup
	var roots [64]common.Hash
	for i := range roots {
		group.Go(func() { roots[i] = work(i) })
	}
	group.Wait()
	for i, got := range roots {
		require.Equal(t, work(i), got)
	}
}

// Copies of a view share its staged writes and log until one of them or the
// view changes. All change in parallel, for the race detector.
func TestParallelCopies(t *testing.T) {
	v := open(t, NewStore())
	step := func(v *View, i int) {
		v.Set(Key{1, byte(i)}, [32]byte{byte(i) + 1})
		v.Get(Key{2, byte(i)})
		_, err := v.SetCode(common.Address{byte(i)}, []byte{byte(i)})
		require.NoError(t, err)
	}
	step(v, 0)
	mark := v.Mark()
	want := rootOf(t, v)
	var group sync.WaitGroup
	for i := range 64 {
		c := v.Copy()
		group.Go(func() {
			c.Get(Key{3})
			c.Rewind(mark)
			d := c.Copy()
			step(c, i)
			require.Equal(t, want, rootOf(t, d))
			require.Len(t, d.Reads(), 1)
			step(d, i)
			require.Equal(t, rootOf(t, c), rootOf(t, d))
			require.Equal(t, c.Entries(), d.Entries())
		})
	}
	unchanged := v.Copy()
	step(v, 7)
	group.Wait()
	require.Equal(t, want, rootOf(t, unchanged))
	require.NotEqual(t, want, rootOf(t, v))
}

// A key that was read or written both raw and with a more specific kind is
// logged with that kind, in either order. One witness proves it and its writes.
func TestKeysAreLoggedAsWhatTheyStandFor(t *testing.T) {
	a, slot := common.Address{1}, common.Hash{31: 1}
	k := storageKey(a, slot)
	ways := map[string]func(*View){
		"read raw":   func(v *View) { v.Get(k) },
		"read":       func(v *View) { v.Storage(a, slot) },
		"write raw":  func(v *View) { v.Set(k, [32]byte{2}) },
		"write":      func(v *View) { v.SetStorage(a, slot, common.Hash{3}) },
		"delete raw": func(v *View) { v.Delete(k) },
	}
	s := NewStore()
	v := open(t, s)
	v.SetStorage(a, slot, common.Hash{1})
	root := commit(t, v)
	for one := range ways {
		for two := range ways {
			v := viewOf(t, s, root)
			ways[one](v)
			ways[two](v)
			w, err := v.Witness()
			require.NoError(t, err)
			_, err = Verify(w, root, v.Writes())
			require.NoError(t, err, "%s, %s", one, two)
			stateless, err := NewStateless(w, root)
			require.NoError(t, err)
			ways[one](stateless)
			ways[two](stateless)
			require.NoError(t, stateless.Matches(w), "%s, %s", one, two)
			want := StorageAccess
			if strings.HasSuffix(one, "raw") && strings.HasSuffix(two, "raw") {
				want = RawAccess
			}
			require.Equal(t, want, w.Entries[0].Kind, "%s, %s", one, two)
		}
	}
}

// An account is proved although one of its keys was read as such before.
func TestRawReadBeforeTheAccount(t *testing.T) {
	a := common.Address{1}
	s, root := deployed(t, a, contract)
	v := viewOf(t, s, root)
	v.Get(codeHashKey(a))
	require.Equal(t, contract, v.Code(v.Account(a).CodeHash))
	_, err := v.Witness()
	require.NoError(t, err)
}

// A read that is rewound leaves the log, and a second read is logged again.
func TestRewind(t *testing.T) {
	a, b := common.Address{1}, common.Address{2}
	s, root := deployed(t, a, contract)
	v := viewOf(t, s, root)
	v.Storage(a, common.Hash{1})
	v.SetTransaction(1)
	before, mark := v.Reads(), v.Mark()
	v.CodeAt(a)
	v.Account(b)
	v.Storage(a, common.Hash{1})
	c := v.Copy()
	v.Rewind(mark)
	require.Equal(t, before, v.Reads())
	w, err := v.Witness()
	require.NoError(t, err)
	require.Empty(t, w.Code)
	require.Len(t, c.Reads(), 5, "a copy has its own log")
	v.Rewind(mark)
	v.SetTransaction(2)
	v.CodeAt(a)
	require.Len(t, v.Reads(), 3)
	require.Equal(t, 2, v.Reads()[2].Transaction)
	w, err = v.Witness()
	require.NoError(t, err)
	require.Len(t, w.Code, 1)
}

// A key that was read as such before a mark is that again, whatever it was read as after it.
func TestRewindWhatKeysStandFor(t *testing.T) {
	a := common.Address{1}
	v := open(t, NewStore())
	v.Get(basicDataKey(a))
	before, mark := v.Entries(), v.Mark()
	for range 2 {
		v.Account(a)
		require.NotEqual(t, mark, v.Mark())
		v.Rewind(mark)
		require.Equal(t, before, v.Entries())
		require.Equal(t, mark, v.Mark())
	}
	v.Account(a)
	later := v.Mark()
	v.Storage(a, common.Hash{1})
	v.Rewind(later)
	require.Equal(t, BasicDataAccess, v.Reads()[0].Kind, "it was that at this mark")
}

// Reset clears the error of earlier reads.
func TestResetForgetsTheError(t *testing.T) {
	s := NewStore()
	for name, reset := range map[string]func(*View) error{
		"reset": func(v *View) error { v.Reset(); return nil },
		"pin":   func(v *View) error { return v.Pin(EmptyRoot) },
		"trie":  func(v *View) error { f := Facade{View: v}; return f.ResetTrie() },
	} {
		v := open(t, s)
		v.Code(common.Hash{1})
		require.ErrorIs(t, v.Err(), ErrUnknownCode)
		require.NoError(t, reset(v), name)
		require.NoError(t, v.Err(), name)
		_, err := v.Root()
		require.NoError(t, err, name)
	}
}

// Whatever is read and rewound between other work: log, entries and witness are those of the rest.
func TestRewoundIsNotLogged(t *testing.T) {
	a := common.Address{1}
	s, root := deployed(t, a, contract)
	rapid.Check(t, func(t *rapid.T) {
		v, clean := viewOf(t, s, root), viewOf(t, s, root)
		for i := range rapid.IntRange(1, 6).Draw(t, "pieces") {
			v.SetTransaction(i)
			clean.SetTransaction(i)
			if rapid.Bool().Draw(t, "kept") {
				todo := drawWork(t)
				todo.run(v)
				todo.run(clean)
				continue
			}
			mark := v.Mark()
			for range rapid.IntRange(1, 6).Draw(t, "reads") {
				b := common.Address{rapid.Byte().Draw(t, "address") % 6}
				slot := common.Hash{31: rapid.SampledFrom([]byte{0, 1, 63, 64}).Draw(t, "slot")}
				rapid.SampledFrom([]func(){
					func() { v.Account(b) },
					func() { v.CodeAt(b) },
					func() { v.Storage(b, slot) },
					func() { v.Get(storageKey(b, slot)) },
					func() { v.Get(codeHashKey(b)) },
					func() { v.Get(Key{1 + b[0], slot[31]}) },
				}).Draw(t, "read")()
			}
			if rapid.Bool().Draw(t, "on a copy") {
				v = v.Copy()
			}
			v.Rewind(mark)
		}
		require.Equal(t, clean.Reads(), v.Reads())
		require.Equal(t, clean.Writes(), v.Writes())
		want, err := clean.Witness()
		require.NoError(t, err)
		got, err := v.Witness()
		require.NoError(t, err)
		require.Equal(t, want.Encode(), got.Encode())
	})
}

// Without the log of reads the values and roots are the same, and there is no
// witness. Copies and later roots have no log either.
func TestDisableReadLog(t *testing.T) {
	a := common.Address{1}
	s, root := deployed(t, a, contract)
	v, logged := viewOf(t, s, root), viewOf(t, s, root)
	v.Account(a)
	v.DisableReadLog()
	for range 2 {
		for _, v := range []*View{v, v.Copy(), v.CopyForPhase2()} {
			require.Equal(t, logged.CodeAt(a), v.CodeAt(a))
			require.Equal(t, logged.Storage(a, common.Hash{1}), v.Storage(a, common.Hash{1}))
			require.Empty(t, v.Reads())
			_, err := v.Witness()
			require.ErrorIs(t, err, ErrNoReadLog)
			require.ErrorIs(t, v.Matches(&Witness{}), ErrNoReadLog)
		}
		for _, v := range []*View{v, logged} {
			v.SetStorage(a, common.Hash{1}, common.Hash{2})
		}
		require.Equal(t, commit(t, logged), commit(t, v))
	}
}

// Writes have the index of the transaction that wrote last.
func TestWritesHaveTransactions(t *testing.T) {
	a := common.Address{1}
	v := open(t, NewStore())
	v.SetStorage(a, common.Hash{1}, common.Hash{1})
	v.SetTransaction(3)
	v.SetStorage(a, common.Hash{2}, common.Hash{1})
	v.Delete(storageKey(a, common.Hash{1}))
	v.SetTransaction(4)
	v.SetStorage(a, common.Hash{3}, common.Hash{1})
	got := map[common.Hash]int{}
	for _, w := range v.Writes() {
		got[w.Slot] = w.Transaction
	}
	require.Equal(t, map[common.Hash]int{{1}: 3, {2}: 3, {3}: 4}, got)
}

// Whatever is written and reverted between other work, writes and root are
// those of the rest, and the reads stay.
func TestRevertedIsNotWritten(t *testing.T) {
	s, root := deployed(t, common.Address{1}, contract)
	rapid.Check(t, func(t *rapid.T) {
		v, clean := viewOf(t, s, root), viewOf(t, s, root)
		for i := range rapid.IntRange(1, 6).Draw(t, "pieces") {
			v.SetTransaction(i)
			clean.SetTransaction(i)
			todo := drawWork(t)
			before := v.Snapshot()
			todo.run(v)
			reads := v.Reads()
			if rapid.Bool().Draw(t, "kept") {
				todo.run(clean)
				continue
			}
			if rapid.Bool().Draw(t, "twice") {
				v.Revert(before)
				todo.run(v)
			}
			v.Revert(before)
			require.Equal(t, reads, v.Reads())
		}
		require.Equal(t, rootOf(t, clean), rootOf(t, v))
		for i, w := range clean.Writes() {
			got := v.Writes()[i]
			require.Equal(t, w.Value, got.Value)
			require.Equal(t, w.Transaction, got.Transaction)
		}
		require.Len(t, v.Writes(), len(clean.Writes()))
		require.Equal(t, commit(t, clean), commit(t, v))
	})
}
