package statedb

import (
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jamq/jamq/statedb/ubt"
)

// work is a random execution: the same reads and writes on any view.
type work []func(*View)

func drawWork(t *rapid.T) (w work) {
	for range rapid.IntRange(0, 12).Draw(t, "steps") {
		a := common.Address{rapid.Byte().Draw(t, "address") % 6}
		slot := common.Hash{0: rapid.SampledFrom([]byte{0, 0, 1, 0xff}).Draw(t, "high"), 31: rapid.SampledFrom([]byte{0, 1, 63, 64}).Draw(t, "low")}
		amount := uint64(rapid.IntRange(0, 2).Draw(t, "amount"))
		w = append(w, rapid.SampledFrom([]func(*View){
			func(v *View) { v.Account(a) },
			func(v *View) { v.Storage(a, slot) },
			func(v *View) { v.Code(v.Account(a).CodeHash) },
			func(v *View) { v.SetStorage(a, slot, common.Hash{31: byte(amount)}) },
			func(v *View) { v.DeleteAccount(a) },
			func(v *View) {
				account := v.Account(a)
				account.Nonce += amount
				_ = v.SetAccount(a, account)
			},
			func(v *View) {
				code := slices.Repeat([]byte{0x60, byte(amount)}, 40)
				h, _ := v.SetCode(a, code)
				_ = v.SetAccount(a, Account{CodeHash: h, CodeSize: len(code), Balance: uint256.NewInt(amount)})
			},
			func(v *View) { v.Get(Key{1 + a[0], slot[31]}) },
			func(v *View) { v.Set(Key{1 + a[0], slot[31]}, [32]byte{byte(amount)}) },
			func(v *View) { v.Delete(Key{1 + a[0], slot[31]}) },
			func(v *View) { v.Delete(storageKey(a, slot)) },
		}).Draw(t, "step"))
	}
	return w
}

func (w work) run(v *View) {
	for _, step := range w {
		step(v)
	}
}

// For any execution, the witness is small, has one encoding and the right
// roots, and suffices to execute again.
func TestWitnessesProve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := NewStore()
		v := open(t, store)
		drawWork(t).run(v)
		pre := commit(t, v)
		todo := drawWork(t)
		todo.run(v)
		made, err := v.Witness()
		require.NoError(t, err)
		encoded := made.Encode()
		require.Len(t, encoded, made.Size())

		w, err := ParseWitness(encoded)
		require.NoError(t, err)
		require.Equal(t, encoded, w.Encode())
		post, err := Verify(w, pre, v.Writes())
		require.NoError(t, err)
		require.Equal(t, rootOf(t, v), post)

		stateless, err := NewStateless(w, pre)
		require.NoError(t, err)
		todo.run(stateless)
		require.NoError(t, stateless.Matches(w))
		require.Equal(t, post, rootOf(t, stateless))
		require.Equal(t, v.Reads(), stateless.Reads())
		require.Equal(t, post, commit(t, v))
	})
}

// otherProof is a good proof of other keys of the sample's state.
func otherProof(t require.TestingT) *ubt.Proof {
	v, _ := sample(t)
	v.Reset()
	v.Get(Key{1, 2, 3})
	w, err := v.Witness()
	require.NoError(t, err)
	return w.Proof
}

// contract is code of an account in the sample.
var contract = []byte{0x60, 0x01, 0x60, 0x02, 0x55}

// sample returns a state and a block on it that reads and writes existing and
// missing accounts, runs code, and deletes.
func sample(t require.TestingT) (*View, *Witness) {
	v := open(t, NewStore())
	for i := range byte(20) {
		a := common.Address{i, 1}
		require.NoError(t, v.SetAccount(a, Account{Nonce: uint64(i) + 1, Balance: uint256.NewInt(1000), CodeHash: emptyCode}))
		v.SetStorage(a, common.Hash{31: 1}, common.Hash{1, i})
		v.SetStorage(a, common.Hash{1}, common.Hash{2, i})
	}
	h, err := v.SetCode(common.Address{3, 1}, contract)
	require.NoError(t, err)
	require.NoError(t, v.SetAccount(common.Address{3, 1}, Account{Nonce: 1, CodeHash: h, CodeSize: len(contract)}))
	commit(t, v)

	rich := common.Address{1, 1}
	account := v.Account(rich)
	account.Balance.SubUint64(account.Balance, 7)
	require.NoError(t, v.SetAccount(rich, account))
	require.Equal(t, contract, v.Code(v.Account(common.Address{3, 1}).CodeHash))
	v.Storage(common.Address{2, 1}, common.Hash{31: 1})
	v.Storage(common.Address{2, 1}, common.Hash{0xff}) // absent, and not the account's header
	v.SetStorage(common.Address{4, 1}, common.Hash{1}, common.Hash{})
	v.Delete(storageKey(common.Address{5, 1}, common.Hash{1}))
	v.Account(common.Address{0xee}) // absent
	require.NoError(t, v.SetAccount(common.Address{0xdd}, Account{Balance: uint256.NewInt(7), CodeHash: emptyCode}))
	w, err := v.Witness()
	require.NoError(t, err)
	return v, w
}

// forged calls f with a fresh copy of a good witness to spoil.
func forged(t *testing.T, good *Witness, f func(*Witness)) *Witness {
	t.Helper()
	w, err := ParseWitness(good.Encode())
	require.NoError(t, err)
	f(w)
	return w
}

// find returns what a witness says of a part of an account.
func find(w *Witness, kind AccessKind, a common.Address) *Entry {
	for i := range w.Entries {
		if e := &w.Entries[i]; e.Kind == kind && e.Address == a {
			return e
		}
	}
	panic("not in the sample")
}

// forgeries are ways of forging the sample's witness.
func forgeries(t *testing.T) map[string]func(*Witness) {
	present := common.Address{2, 1}
	return map[string]func(*Witness){
		"address swapped": func(w *Witness) { find(w, StorageAccess, present).Address = common.Address{6, 1} },
		"slot swapped":    func(w *Witness) { find(w, StorageAccess, present).Slot[30]++ },
		"kind swapped":    func(w *Witness) { find(w, BasicDataAccess, common.Address{1, 1}).Kind = CodeHashAccess },
		"unknown kind":    func(w *Witness) { w.Entries[0].Kind = CodeChunkAccess + 1 },
		"key swapped":     func(w *Witness) { w.Entries[0].Key, w.Entries[1].Key = w.Entries[1].Key, w.Entries[0].Key },
		"slot that wraps into the header": func(w *Witness) {
			e := find(w, StorageAccess, present)
			e.Slot, e.Key = common.Hash{0xff}, basicDataKey(e.Address) // the slot, wrapped
		},
		"metadata that its kind does not have": func(w *Witness) { find(w, BasicDataAccess, common.Address{1, 1}).Slot[0] = 1 },
		"entries out of order":                 func(w *Witness) { slices.Reverse(w.Entries) },
		"an entry twice":                       func(w *Witness) { w.Entries = append(w.Entries, w.Entries[len(w.Entries)-1]) },
		"an entry missing": func(w *Witness) {
			missing := find(w, StorageAccess, present).Key
			w.Entries = slices.DeleteFunc(w.Entries, func(e Entry) bool { return e.Key == missing })
		},
		"an entry more": func(w *Witness) {
			e := Entry{Access: Access{Kind: StorageAccess, Address: common.Address{9, 1}, Slot: common.Hash{31: 1}}.derive()}
			w.Entries = append(w.Entries, e)
			slices.SortFunc(w.Entries, func(a, b Entry) int { return a.Key.Compare(b.Key) })
		},
		"set and deleted":              func(w *Witness) { e := find(w, StorageAccess, common.Address{4, 1}); e.Set, e.Deleted = true, true },
		"other code":                   func(w *Witness) { w.Code[0] = append(w.Code[0], 0) },
		"code twice":                   func(w *Witness) { w.Code = append(w.Code, w.Code[0]) },
		"code of nobody":               func(w *Witness) { w.Code = append(w.Code, []byte{1}) },
		"empty code":                   func(w *Witness) { w.Code = append([][]byte{nil}, w.Code...) },
		"no proof":                     func(w *Witness) { w.Proof = new(ubt.Proof) },
		"the proof of another witness": func(w *Witness) { w.Proof = otherProof(t) },
	}
}

// Verify and NewStateless refuse each kind of forged witness with ErrWitness.
func TestForgedWitnesses(t *testing.T) {
	v, good := sample(t)
	pre, writes := v.ActiveRoot(), v.Writes()
	post, err := Verify(good, pre, writes)
	require.NoError(t, err)
	require.Equal(t, rootOf(t, v), post)
	for name, f := range forgeries(t) {
		t.Run(name, func(t *testing.T) {
			w := forged(t, good, f)
			_, err := Verify(w, pre, writes)
			require.ErrorIs(t, err, ErrWitness)
			_, err = NewStateless(w, pre)
			require.ErrorIs(t, err, ErrWitness)
			if again, err := ParseWitness(w.Encode()); err == nil && !slices.Equal(w.Encode(), good.Encode()) {
				_, err = NewStateless(again, pre)
				require.ErrorIs(t, err, ErrWitness)
			}
		})
	}
	t.Run("another root", func(t *testing.T) {
		_, err := Verify(good, post, writes)
		require.ErrorIs(t, err, ErrWitness)
		_, err = Verify(good, EmptyRoot, writes)
		require.ErrorIs(t, err, ErrWitness)
	})
}

// Flipped bits, bytes cut off, put in or put after: none of it is a witness.
func TestDamagedWitnesses(t *testing.T) {
	v, good := sample(t)
	encoded := good.Encode()
	refused := func(b []byte, what string, at int) {
		w, err := ParseWitness(b)
		if err == nil {
			_, err = Verify(w, v.ActiveRoot(), v.Writes())
		}
		require.ErrorIs(t, err, ErrWitness, "%s at %d", what, at)
	}
	for i := range encoded {
		refused(encoded[:i], "cut", i)
		refused(slices.Insert(slices.Clone(encoded), i, 0), "zero", i)
	}
	for i := range 8 * len(encoded) {
		b := slices.Clone(encoded)
		b[i/8] ^= 1 << (i % 8)
		refused(b, "bit", i)
	}
	refused(append(slices.Clone(encoded), 0), "zero", len(encoded))
}

// The same with a valid checksum, which a forger can compute. An accepted
// witness is another true one: it has other keys that are absent in the same
// place and that the execution does not read.
func TestDamagedWitnessesWithChecksum(t *testing.T) {
	v, good := sample(t)
	encoded := good.Encode()
	body := encoded[:len(encoded)-checksumSize]
	for i := range 8 * len(body) {
		b := slices.Clone(body)
		b[i/8] ^= 1 << (i % 8)
		w, err := ParseWitness(append(b, checksum(b)...))
		if err == nil {
			_, err = Verify(w, v.ActiveRoot(), v.Writes())
		}
		if err != nil {
			require.ErrorIs(t, err, ErrWitness)
			continue
		}
		require.ErrorIs(t, v.Matches(w), ErrWitness, "bit %d", i)
		for j := range w.Entries {
			if w.Entries[j].Key != good.Entries[j].Key {
				_, there, err := v.tree.Get(w.Entries[j].Key)
				require.NoError(t, err)
				require.False(t, there, "bit %d", i)
			}
		}
	}
}

// The writes are those that the witness says, no more and no less.
func TestVerifyBindsTheWrites(t *testing.T) {
	v, w := sample(t)
	refused := func(name string, writes []Write) {
		_, err := Verify(w, v.ActiveRoot(), writes)
		require.ErrorIs(t, err, ErrWitness, name)
	}
	writes := v.Writes()
	shuffled := slices.Clone(writes)
	slices.Reverse(shuffled)
	post, err := Verify(w, v.ActiveRoot(), shuffled)
	require.NoError(t, err)
	require.Equal(t, rootOf(t, v), post)

	refused("none", nil)
	refused("one twice", append(slices.Clone(writes), writes[0]))
	for i := range writes {
		refused("one missing", slices.Delete(slices.Clone(writes), i, i+1))
		change := func(name string, f func(*Write)) {
			other := slices.Clone(writes)
			f(&other[i])
			refused(name, other)
		}
		change("delete", func(w *Write) { w.Deleted = !w.Deleted })
		change("key", func(w *Write) { w.Key[31] ^= 1 })
		change("address", func(w *Write) { w.Address[19]++ })
		change("kind", func(w *Write) { w.Kind = CodeChunkAccess })
		other := slices.Clone(writes)
		if !other[i].Deleted {
			other[i].Value[31] ^= 1
			got, err := Verify(w, v.ActiveRoot(), other)
			require.True(t, err != nil || got != post, "another value leads to another root")
		}
	}
	extra := Write{Access: Access{Kind: StorageAccess, Address: common.Address{9, 1}, Slot: common.Hash{31: 1}}.derive(), Value: [32]byte{1}}
	refused("one more", append(slices.Clone(writes), extra))
}

// A stateless view returns an error if its witness lacks a value, and keeps the
// error until it is dropped.
func TestStatelessViewFailsOnWhatItLacks(t *testing.T) {
	v, w := sample(t)
	for name, step := range map[string]func(*View){
		"slot":    func(v *View) { v.Storage(common.Address{7, 1}, common.Hash{31: 1}) },
		"account": func(v *View) { v.Account(common.Address{7, 1}) },
		"raw":     func(v *View) { v.Get(basicDataKey(common.Address{7, 1})) },
		// The account is proved to be absent.
		"shown by chance": func(v *View) { v.Storage(common.Address{0xee}, common.Hash{31: 1}) },
		"code":            func(v *View) { v.Code(common.Hash{1}) },
		"delete where it is set": func(v *View) {
			v.DeleteAccount(common.Address{1, 1})
			v.Delete(basicDataKey(common.Address{1, 1}))
		},
		"write": func(v *View) { v.SetStorage(common.Address{7, 1}, common.Hash{31: 1}, common.Hash{1}) },
	} {
		stateless, err := NewStateless(w, v.ActiveRoot())
		require.NoError(t, err)
		step(stateless)
		if name != "write" && name != "delete where it is set" { // those fail later, in Root
			require.ErrorIs(t, stateless.Err(), ErrNotInWitness, name)
		}
		_, err = stateless.Root()
		require.ErrorIs(t, err, ErrNotInWitness, name)
		require.Error(t, stateless.Matches(w), name)
	}
	stateless, err := NewStateless(w, v.ActiveRoot())
	require.NoError(t, err)
	_, err = stateless.Commit()
	require.ErrorIs(t, err, ErrStateless)
	_, err = stateless.Witness()
	require.ErrorIs(t, err, ErrStateless)
	require.ErrorIs(t, stateless.Pin(EmptyRoot), ErrStateless)
	require.ErrorIs(t, stateless.Matches(w), ErrWitness, "it has read nothing")
}

// There are witnesses of a block that touches nothing, of one that reads only
// absent values, and of one on the empty state.
func TestWitnessesOfLittle(t *testing.T) {
	full, _ := sample(t)
	full.Reset()
	for _, v := range []*View{full, open(t, NewStore())} {
		for _, step := range []func(*View){
			func(*View) {},
			func(v *View) { v.Storage(common.Address{0xab}, common.Hash{1}) },
			func(v *View) { v.SetStorage(common.Address{0xab}, common.Hash{1}, common.Hash{1}) },
		} {
			v.Reset()
			step(v)
			w, err := v.Witness()
			require.NoError(t, err)
			w, err = ParseWitness(w.Encode())
			require.NoError(t, err)
			post, err := Verify(w, v.ActiveRoot(), v.Writes())
			require.NoError(t, err)
			require.Equal(t, rootOf(t, v), post)
		}
	}
}

func TestCodeMustBelongToAnAccount(t *testing.T) {
	v, _ := sample(t)
	v.Reset()
	v.Code(keccak(contract))
	_, err := v.Witness()
	require.ErrorIs(t, err, ErrUnboundCode)
	v.Account(common.Address{3, 1})
	_, err = v.Witness()
	require.NoError(t, err)
}

// Input from outside never panics. A parsed witness has the same encoding
// again, and a verified one is true.
func FuzzParseWitness(f *testing.F) {
	v, w := sample(f)
	encoded := w.Encode()
	f.Add(encoded[:len(encoded)-checksumSize])
	f.Add([]byte{witnessVersion})
	for _, v := range readVectors(f) {
		f.Add([]byte(v.Witness[:max(len(v.Witness)-checksumSize, 0)]))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		b := append(slices.Clone(body), checksum(body)...)
		w, err := ParseWitness(b)
		if err != nil {
			require.ErrorIs(t, err, ErrWitness)
			return
		}
		require.Equal(t, b, w.Encode())
		stateless, err := NewStateless(w, v.ActiveRoot())
		if err != nil {
			require.ErrorIs(t, err, ErrWitness)
			return
		}
		for _, e := range w.Entries {
			got, ok, err := stateless.tree.Get(e.Key)
			require.NoError(t, err)
			want, wantOK, err := v.tree.Get(e.Key)
			require.NoError(t, err)
			require.Equal(t, wantOK, ok)
			require.Equal(t, want, got)
		}
	})
}

// An execution has one witness. With raw keys in place of specific kinds, it is
// the witness of another execution.
func TestKindsAreBound(t *testing.T) {
	a := common.Address{1}
	v := open(t, NewStore())
	v.SetStorage(a, common.Hash{31: 1}, common.Hash{1})
	root := commit(t, v)
	execute := func(v *View) {
		v.Account(a)
		v.Storage(a, common.Hash{31: 1})
		v.SetStorage(a, common.Hash{31: 1}, common.Hash{2})
	}
	execute(v)
	good, err := v.Witness()
	require.NoError(t, err)
	for i := range good.Entries {
		w, err := ParseWitness(good.Encode())
		require.NoError(t, err)
		w.Entries[i].Access = Access{Kind: RawAccess, Key: w.Entries[i].Key}
		w, err = ParseWitness(w.Encode())
		require.NoError(t, err, "by itself it is a witness")
		stateless, err := NewStateless(w, root)
		require.NoError(t, err)
		execute(stateless)
		require.ErrorIs(t, stateless.Matches(w), ErrWitness)
		if w.Entries[i].Set {
			_, err = Verify(w, root, v.Writes())
			require.ErrorIs(t, err, ErrWitness)
		}
	}
}
