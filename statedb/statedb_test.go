package statedb

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naiveRoot hashes a map of values straight from the text of EIP-7864, without any tree.
func naiveRoot(values map[Key][32]byte) common.Hash {
	keys := make([]Key, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b Key) int { return bytes.Compare(a[:], b[:]) })
	return naiveTree(keys, values, 0)
}

func naiveTree(keys []Key, values map[Key][32]byte, depth int) common.Hash {
	switch {
	case len(keys) == 0:
		return common.Hash{}
	case keys[0].stem() == keys[len(keys)-1].stem():
		var level [256]common.Hash
		for _, k := range keys {
			v := values[k]
			level[k[31]] = sha256.Sum256(v[:])
		}
		for width := 256; width > 1; width /= 2 {
			for i := range width / 2 {
				level[i] = naivePair(level[2*i], level[2*i+1])
			}
		}
		return sha256.Sum256(slices.Concat(keys[0][:31], []byte{0}, level[0][:]))
	}
	var left, right []Key
	for _, k := range keys {
		if k[depth/8]>>(7-depth%8)&1 == 0 {
			left = append(left, k)
		} else {
			right = append(right, k)
		}
	}
	return naivePair(naiveTree(left, values, depth+1), naiveTree(right, values, depth+1))
}

func naivePair(l, r common.Hash) common.Hash {
	if l == (common.Hash{}) && r == (common.Hash{}) {
		return common.Hash{}
	}
	return sha256.Sum256(slices.Concat(l[:], r[:]))
}

func newView0(t interface{ Fatal(...any) }, s *Store) *View {
	v, err := s.View(EmptyRoot)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// drawKey makes keys that share long prefixes often.
func drawKey(t *rapid.T) (k Key) {
	copy(k[:], rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x80, 0xff}), 0, 4).Draw(t, "prefix"))
	k[30] = rapid.SampledFrom([]byte{0, 1, 2}).Draw(t, "late")
	k[31] = rapid.SampledFrom([]byte{0, 1, 64, 255}).Draw(t, "sub")
	return k
}

// After any writes and deletes, in any batches, the root is that of the values alone.
func TestRootAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newView0(t, NewStore(EIP7864()))
		model := make(map[Key][32]byte)
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			for range rapid.IntRange(1, 30).Draw(t, "writes") {
				k := drawKey(t)
				if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
					v.Delete(k)
					delete(model, k)
					continue
				}
				value := [32]byte{rapid.Byte().Draw(t, "value")}
				v.Set(k, value)
				model[k] = value
			}
			want := naiveRoot(model)
			if v.Root() != want {
				t.Fatalf("root before commit differs from the naive one of %d values", len(model))
			}
			if got := v.Commit(); got != want {
				t.Fatalf("root %s, want %s", got, want)
			}
		}
		seen := 0
		v.Walk(func(k Key, value [32]byte) bool {
			seen++
			if model[k] != value {
				t.Fatalf("walk gives %x at %x", value, k)
			}
			return true
		})
		if seen != len(model) {
			t.Fatalf("walk gives %d values, want %d", seen, len(model))
		}
	})
}

// One stem with many values keeps the hashes of groups of them; the root is the same.
func TestDenseStemsAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newView0(t, NewStore(EIP7864()))
		model := make(map[Key][32]byte)
		for range rapid.IntRange(1, 5).Draw(t, "batches") {
			for _, sub := range rapid.SliceOfN(rapid.Byte(), 1, 120).Draw(t, "subs") {
				k := Key{7, 31: sub}
				if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
					v.Delete(k)
					delete(model, k)
					continue
				}
				model[k] = [32]byte{rapid.Byte().Draw(t, "value")}
				v.Set(k, model[k])
			}
			if got := v.Commit(); got != naiveRoot(model) {
				t.Fatalf("root of %d values differs from the naive one", len(model))
			}
			for k, want := range model {
				if got, ok := v.Get(k); !ok || got != want {
					t.Fatalf("%x is %x, %v, want %x", k, got, ok, want)
				}
			}
		}
	})
}

// Enough writes at once to be hashed by several goroutines.
func TestLargeBatch(t *testing.T) {
	v := newView0(t, NewStore(EIP7864()))
	model := make(map[Key][32]byte)
	for i := range 5000 {
		k := Key(sha256.Sum256(fmt.Append(nil, i)))
		model[k] = [32]byte{byte(i), 1}
		v.Set(k, model[k])
	}
	require.Equal(t, naiveRoot(model), v.Commit())
}

// A slot from 0xff00… on must not land in the account's header: 256^31 + slot has 33 bytes.
func TestHighSlotsDoNotAliasTheHeader(t *testing.T) {
	p := EIP7864()
	a := common.Address{1}
	seen := map[Key]string{p.BasicDataKey(a): "basic data", p.CodeHashKey(a): "code hash"}
	for _, slot := range []common.Hash{
		{}, {31: 63}, {31: 64}, {30: 1}, {0: 0xff}, {0: 0xff, 31: 1}, {0: 0xff, 31: 64}, {0: 0xfe}, {0: 1}, {0: 0xff, 30: 1},
	} {
		k := p.StorageKey(a, slot)
		require.Empty(t, seen[k], "slot %s", slot)
		seen[k] = slot.Hex()
	}
	for n := range uint32(300) {
		k := p.CodeChunkKey(a, n)
		require.Empty(t, seen[k], "chunk %d", n)
		seen[k] = fmt.Sprint("chunk ", n)
	}
}

// S1: no view sees what another one does, clones included.
func TestS1Isolated(t *testing.T) {
	store := NewStore(EIP7864())
	a, slot := common.Address{1}, common.Hash{9}
	one := newView0(t, store)
	one.SetStorage(a, slot, common.Hash{1})
	two := one.Clone()
	two.SetStorage(a, slot, common.Hash{2})
	two.Storage(a, common.Hash{7})
	require.Equal(t, common.Hash{1}, one.Storage(a, slot))
	require.Equal(t, common.Hash{2}, two.Storage(a, slot))
	require.Len(t, one.Reads(), 1)
	require.Len(t, two.Reads(), 2)

	root := two.Commit()
	require.Equal(t, common.Hash{1}, one.Storage(a, slot))
	other := newView0(t, store)
	require.Equal(t, common.Hash{}, other.Storage(a, slot))
	seen, err := store.View(root)
	require.NoError(t, err)
	require.Equal(t, common.Hash{2}, seen.Storage(a, slot))
}

// S2: a published root has the same content for ever.
func TestS2Immutable(t *testing.T) {
	store := NewStore(EIP7864())
	v := newView0(t, store)
	v.Set(Key{1}, [32]byte{1})
	root := v.Commit()
	for i := range byte(50) {
		v.Set(Key{1, i}, [32]byte{i, 1})
		v.Set(Key{1}, [32]byte{i, 2})
		v.Commit()
	}
	again, err := store.View(root)
	require.NoError(t, err)
	value, ok := again.Get(Key{1})
	require.True(t, ok)
	require.Equal(t, [32]byte{1}, value)
	require.Equal(t, root, again.Root())
}

// S3: only the store moves the canonical root, and it discards nothing that is in use.
func TestS3Guarded(t *testing.T) {
	store := NewStore(EIP7864())
	v := newView0(t, store)
	v.Set(Key{1}, [32]byte{1})
	root := v.Commit()
	require.Equal(t, EmptyRoot, store.Canonical())
	require.ErrorIs(t, store.SetCanonical(common.Hash{5}), ErrUnknownRoot)
	require.NoError(t, store.SetCanonical(root))
	require.ErrorIs(t, store.Discard(root), ErrInUse)
	require.NoError(t, store.Pin(root))
	require.NoError(t, store.SetCanonical(EmptyRoot))
	require.ErrorIs(t, store.Discard(root), ErrInUse)
	require.NoError(t, store.Unpin(root))
	require.ErrorIs(t, store.Unpin(root), ErrUnknownRoot)
	parent, err := store.Parent(root)
	require.NoError(t, err)
	require.Equal(t, EmptyRoot, parent)
	require.NoError(t, store.Discard(root))
	_, err = store.View(root)
	require.ErrorIs(t, err, ErrUnknownRoot)
	value, _ := v.Get(Key{1})
	require.Equal(t, [32]byte{1}, value, "an open view goes on")
}

func TestAccounts(t *testing.T) {
	v := newView0(t, NewStore(EIP7864()))
	a := common.Address{7}
	require.False(t, v.Account(a).Exists)
	code := bytes.Repeat([]byte{0x7f, 1, 2, 3}, 100)
	codeHash, err := v.SetCode(a, code)
	require.NoError(t, err)
	want := Account{Exists: true, Nonce: 1 << 60, Balance: new(uint256.Int).Lsh(uint256.NewInt(1), 127), CodeHash: codeHash, CodeSize: len(code)}
	require.NoError(t, v.SetAccount(a, want))
	require.Equal(t, want, v.Account(a))
	require.Equal(t, code, v.Code(codeHash))
	v.Commit()
	require.Equal(t, want, v.Account(a))
	require.Equal(t, code, v.Clone().Code(codeHash))

	before := v.Root()
	require.ErrorIs(t, v.SetAccount(a, Account{Balance: new(uint256.Int).Lsh(uint256.NewInt(1), 128)}), ErrBalanceRange)
	require.ErrorIs(t, v.SetAccount(a, Account{CodeSize: 1 << 24}), ErrCodeSize)
	require.Equal(t, before, v.Root())
	v.DeleteAccount(a)
	require.False(t, v.Account(a).Exists)
}

// The log keeps each key once, in the order of first access, with what it was derived from.
func TestReadLog(t *testing.T) {
	v := newView0(t, NewStore(EIP7864()))
	a := common.Address{7}
	v.Storage(a, common.Hash{2})
	v.Account(a)
	v.Storage(a, common.Hash{1})
	v.Storage(a, common.Hash{2})
	reads := v.Reads()
	require.Len(t, reads, 4)
	require.Equal(t, Access{Kind: StorageAccess, Key: v.store.profile.StorageKey(a, common.Hash{2}), Address: a, Slot: common.Hash{2}}, reads[0])
	require.Equal(t, BasicDataAccess, reads[1].Kind)
	require.Equal(t, CodeHashAccess, reads[2].Kind)
	require.Equal(t, common.Hash{1}, reads[3].Slot)
}

// Sixty-four views at once, for the race detector: each ends at the root that it would reach alone.
func TestParallelViews(t *testing.T) {
	store := NewStore(EIP7864())
	base := newView0(t, store)
	for i := range 300 {
		base.Set(Key(sha256.Sum256([]byte{byte(i), byte(i >> 8)})), [32]byte{1})
	}
	root := base.Commit()
	work := func(i int) common.Hash {
		v, err := store.View(root)
		if err != nil {
			panic(err)
		}
		for j := range 100 {
			k := Key(sha256.Sum256([]byte{byte(j), byte(i)}))
			v.Get(k)
			v.Set(k, [32]byte{byte(i), 1})
		}
		return v.Commit()
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

func ExampleView() {
	store := NewStore(EIP7864())
	view, err := store.View(EmptyRoot)
	if err != nil {
		panic(err)
	}
	alice := common.Address{0xa1}
	if err := view.SetAccount(alice, Account{Nonce: 1, Balance: uint256.NewInt(100)}); err != nil {
		panic(err)
	}
	snapshot := view.Clone() // its own writes from here on
	root := view.Commit()
	fmt.Println("published:", store.Has(root), "canonical moved:", store.Canonical() == root)
	fmt.Println("balance:", snapshot.Account(alice).Balance, "reads:", len(snapshot.Reads()))
	// Output:
	// published: true canonical moved: false
	// balance: 100 reads: 2
}
