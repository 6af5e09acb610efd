package statedb

import (
	"encoding/binary"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb/ubt"
)

// An attacker chooses a storage slot so that its stem, which is honestly in the
// state, reads as an inner node over a forged account. The witness that shows
// the account is refused.
func TestForgedPresenceThroughEmbedding(t *testing.T) {
	h2 := func(l, r common.Hash) common.Hash { return hasher.Inner(l, r) } // Embed, untruncated
	attacker := common.Address{0xa7, 1}

	// The honest state before the attack.
	store := NewStore()
	v := open(t, store)
	var stems [][32]byte
	for i := range byte(8) {
		a := common.Address{i, 1}
		require.NoError(t, v.SetAccount(a, Account{Nonce: 1, Balance: uint256.NewInt(1000), CodeHash: emptyCode}))
		stems = append(stems, basicDataKey(a))
	}
	require.NoError(t, v.SetAccount(attacker, Account{Nonce: 1, Balance: uint256.NewInt(1), CodeHash: emptyCode}))
	stems = append(stems, basicDataKey(attacker))
	common1 := func(a, b []byte) int {
		for i := range 248 {
			if a[i/8]>>(7-i%8)&1 != b[i/8]>>(7-i%8)&1 {
				return i
			}
		}
		return 248
	}
	bitAt := func(b []byte, i int) byte { return b[i/8] >> (7 - i%8) & 1 }

	// Grinding: a made-up account, at an address that the attacker has the key of.
	var slot common.Hash
	var thief common.Address
	var basic, codeHash [32]byte
	found := false
	tries := 0
search:
	for n := uint32(0); n < 4000; n++ {
		thief = common.Address{0xee}
		binary.BigEndian.PutUint32(thief[4:], n)
		name := embed(thief, [32]byte{})
		codeHash = emptyCode
		ch := hasher.Leaf(codeHash)
		for nonce := uint64(0); nonce < 1<<13; nonce++ {
			tries++
			basic = [32]byte{}
			basic[16] = 1 // 2^120 wei
			binary.BigEndian.PutUint64(basic[nonceOffset:], 0)
			binary.BigEndian.PutUint64(basic[24:], nonce)
			at := h2(hasher.Leaf(basic), ch)
			for range 7 {
				at = h2(at, common.Hash{})
			}
			idx := h2(common.BytesToHash(append(name[:], 0)), at)
			if idx[0] != 0 || idx[1] == 0 {
				continue
			}
			stem := h2(common.BytesToHash(attacker[:]), idx)
			if stem[31] != 0 {
				continue
			}
			d := 0
			for _, s := range stems {
				d = max(d, common1(s[:], stem[:])+1)
			}
			if common1(name[:], stem[:]) < d || bitAt(name[:], d) != 0 || bitAt(name[:], d+1) != 1 {
				continue
			}
			copy(slot[:31], idx[1:])
			slot[0]--
			slot[31] = 0
			found = true
			break search
		}
	}
	require.True(t, found)
	t.Logf("found after %d tries, slot %s", tries, slot)

	// The contract writes its own slot, honestly.
	v.SetStorage(attacker, slot, common.Hash{31: 1})
	root := commit(t, v)
	require.False(t, v.Account(thief).Exists)
	v.Reset()
	v.Storage(attacker, slot)
	honest, err := v.Witness()
	require.NoError(t, err)
	enc := honest.Proof.AppendTo(nil)
	nbits := int(binary.BigEndian.Uint32(enc))
	nopened, nhashes := int(binary.BigEndian.Uint32(enc[4:])), int(binary.BigEndian.Uint32(enc[8:]))
	require.Zero(t, nopened)
	bits := enc[16:]
	hashes := enc[16+(nbits+7)/8:][:32*nhashes]
	d := 0
	for bits[d*2/8]>>(6-d*2%8)&3 == 1 {
		d++
	}
	var siblingBits []byte
	for i := 2*d + 2 + 9; i < nbits; i++ {
		siblingBits = append(siblingBits, bitAt(bits, i))
	}
	require.Len(t, siblingBits, d)

	// The forged proof.
	var out []byte
	for range d + 2 { // real inner nodes, the stem as one, its name as one
		out = append(out, 0, 1)
	}
	out = append(out, 1, 0)                      // own stem
	out = append(out, 1, 1, 0, 0, 0, 0, 0, 0, 0) // two values
	out = append(out, 1, 1)                      // siblings: 0^12 ‖ address; the values of the stem
	out = append(out, siblingBits...)
	values := hasher.Leaf(common.Hash{31: 1})
	for range 8 {
		values = h2(values, common.Hash{})
	}
	all := append(common.BytesToHash(attacker[:]).Bytes(), values[:]...)
	all = append(all, hashes...)
	b := binary.BigEndian.AppendUint32(nil, uint32(len(out)))
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(all)/32))
	b = binary.BigEndian.AppendUint32(b, 2)
	packed := make([]byte, (len(out)+7)/8)
	for i, x := range out {
		packed[i/8] |= x << (7 - i%8)
	}
	b = append(append(b, packed...), all...)
	b = append(append(b, basic[:]...), codeHash[:]...)
	proof, err := ubt.ParseProof(b)
	require.NoError(t, err)

	w := &Witness{Proof: proof, Entries: []Entry{
		{Access: Access{Kind: BasicDataAccess, Address: thief}.derive()},
		{Access: Access{Kind: CodeHashAccess, Address: thief}.derive()},
	}}
	w, err = ParseWitness(w.Encode())
	require.NoError(t, err)
	stateless, err := NewStateless(w, root)
	if err == nil {
		post, err := Verify(w, root, nil)
		require.NoError(t, err)
		require.Equal(t, root, post)
		t.Fatalf("FORGED: the true state has no account %s, the stateless view on a verified witness gives it %s wei", thief, stateless.Account(thief).Balance)
	}
	require.ErrorIs(t, err, ErrWitness)
}

// An attacker chooses a slot of its contract so that its stem reads as an inner
// node over a raw stem that begins with the preimage of a stem. A witness that
// lists such a key as read would prove the slot absent, although it exists.
func TestForgedAbsenceThroughRawKey(t *testing.T) {
	contract := common.Address{0xa7} // ends in a zero byte
	data := common.BytesToHash(contract[:])
	raw := Access{Kind: RawAccess, Key: Key(append(data[:StemSize:StemSize], 0))}
	value, slot := grindSlot(t, contract)
	v := open(t, NewStore())
	v.SetStorage(contract, slot, common.Hash{1})
	root := commit(t, v)

	// The only stem of the tree, read as an inner node: on the left the raw
	// stem, on the right the root of the values.
	target := v.slot(contract, slot)
	values := hasher.Leaf(common.Hash{1})
	for range 8 { // slot 0 of its stem
		values = hasher.Inner(values, common.Hash{})
	}
	fake, err := ubt.Tree{}.Apply(&hasher, []ubt.Write{{Key: raw.Key, Value: value}})
	require.NoError(t, err)
	require.Equal(t, root, hasher.Inner(fake.Root(), values))
	w := &Witness{Entries: []Entry{{Access: raw}, {Access: target}}, Proof: besideHash(t, value, values)}
	w, err = ParseWitness(w.Encode())
	require.NoError(t, err)
	_, err = Verify(w, root, nil)
	require.ErrorIs(t, err, ErrWitness)
	_, err = NewStateless(w, root)
	require.ErrorIs(t, err, ErrWitness)
}

// grindSlot returns a slot of a contract, and the value of a raw stem whose
// values have the slot's tree index as their root. The slot's stem is then on
// the left, and its hash ends in a zero byte.
func grindSlot(t *testing.T, contract common.Address) (value [32]byte, slot common.Hash) {
	for n := range uint64(1 << 22) {
		binary.BigEndian.PutUint64(value[:], n)
		index := hasher.Leaf(value)
		for range 8 {
			index = hasher.Inner(index, common.Hash{})
		}
		if index[0] != 0 || index[1] == 0 {
			continue
		}
		if stem := hasher.Inner(common.BytesToHash(contract[:]), index); stem[StemSize] != 0 || stem[0] >= 0x80 {
			continue // a stem is hashed as an inner node is
		}
		copy(slot[:], index[1:])
		slot[0]--
		return value, slot
	}
	t.Fatal("no slot")
	return value, slot
}

// besideHash returns a proof of an inner node with a hash on the right. On the
// left it has the stem of the first of two keys, with a value at index 0.
func besideHash(t *testing.T, value [32]byte, right common.Hash) *ubt.Proof {
	const (
		bits = 15                 // 01 inner; 10 1 stem of the first key; 1 00000000 value; 1 hash
		data = 0b0110110000000010 // and an unused bit
	)
	var b []byte
	for _, n := range []uint32{bits, 0, 1, 1} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	b = binary.BigEndian.AppendUint16(b, data)
	proof, err := ubt.ParseProof(append(append(b, right[:]...), value[:]...))
	require.NoError(t, err)
	return proof
}

// A host that uses such keys gets an error when it creates a witness. Their
// absence can be proved.
func TestRawKeysOfTwelveZeros(t *testing.T) {
	k := Key{11: 0, 12: 1}
	v := open(t, NewStore())
	v.Get(k)
	v.Set(k, [32]byte{1})
	w, err := v.Witness()
	require.NoError(t, err)
	post, err := Verify(w, EmptyRoot, v.Writes())
	require.NoError(t, err)
	require.Equal(t, post, commit(t, v))
	v.Get(k)
	_, err = v.Witness()
	require.ErrorIs(t, err, ErrWitness)
}
