package statetrie

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
)

// fiveKey is the key of the proposal's test state that begins with the given three bits.
func fiveKey(bits string) Key {
	k := Key{0b11010}
	for i, c := range bits {
		k[0] |= byte(c-'0') << (7 - i)
	}
	copy(k[1:], bytes.Repeat([]byte{0x5a}, 30))
	return k
}

func stateOf(bits ...string) (t *Trie) {
	for _, b := range bits {
		t = t.Set(fiveKey(b), []byte("value "+b))
	}
	return t
}

// five are the keys of that state.
var five = []string{"000", "001", "100", "110", "111"}

// The test vectors of the open proposal for JIP-2 (polkadot-fellows/JIPs, pull request 16).
func TestCompactVectors(t *testing.T) {
	const (
		leaf000   = "40f3854ff47a42a159d21e8275e15df4937d19063426e38cfdc30878dbc22ea6"
		leaf100   = "6b177808b75d08e8e68fc330d42ebdda1eadbd804db18d1e4679cbcb349c52df"
		leaf110   = "2af306b851cf153d7c58cf43682fed3b75f2cdd7dfc9a547dcfe990ccaea77ab"
		leaf111   = "883a0c1f05cbac875dae2e53c5c15dfad106d7272bf3cb07015aae7e8656f7f9"
		subtree0  = "50918ec4ad4465ee3baa8a272129bd2534ad911f63d22abff4716baa78bc97c3"
		subtree00 = "41dd8fddabce96f7a9e0b737297a41b55924bb4e5e7c7e2f0772ef948a60debd"
		subtree11 = "4edb3501f7717e134d548ba9825c4e98a8fe174ec15b2d51667d3688dca3f7e9"
	)
	state := stateOf(five...)
	require.Equal(t, common.HexToHash("9b9760b1a0bbb685177ad5ddd98b1ae446307255aca511c22e4c2e778cec425f"), state.Root())
	value := func(bits string) string { return hex.EncodeToString([]byte("value " + bits)) }
	for name, x := range map[string]struct {
		state *Trie
		query Query
		proof string
	}{
		"one key": {state, Query{Keys: []Key{fiveKey("110")}},
			"00 1134 09 " + subtree0 + leaf100 + leaf111 + strings.Repeat("d2", 30) + "d0" + value("110")},
		"two keys": {state, Query{Keys: []Key{fiveKey("001"), fiveKey("111")}},
			"00 01e11c 0909 " + leaf000 + leaf100 + leaf110 + strings.Repeat("d2", 30) + "d6" + strings.Repeat("96", 30) + "80" + value("001") + value("111")},
		"two keys that are known": {state, Query{Keys: []Key{fiveKey("001"), fiveKey("111")}, Known: KnownKeys},
			"00 01e11c 4949 " + leaf000 + leaf100 + leaf110 + value("001") + value("111")},
		"a range": {state, Query{Ranges: []KeyRange{{fiveKey("001"), fiveKey("110")}}},
			"00 01e334 090909 " + leaf000 + leaf111 + strings.Repeat("d2", 30) + "d3" + strings.Repeat("4b", 30) + strings.Repeat("5a", 31) + value("001") + value("100") + value("110")},
		"two absent keys": {state, Query{Keys: []Key{fiveKey("010"), fiveKey("101")}},
			"00 0634 09 " + subtree00 + subtree11 + strings.Repeat("69", 30) + "68" + value("100")},
		"the empty state": {nil, Query{Keys: []Key{fiveKey("010")}}, "00 80"},
		"a state of one key": {stateOf("110"), Query{Keys: []Key{fiveKey("110")}},
			"00 c0 09 da" + strings.Repeat("5a", 30) + value("110")},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := hex.DecodeString(strings.ReplaceAll(x.proof, " ", ""))
			require.NoError(t, err)
			have, complete, _, err := x.state.ProveQuery(x.query, 1<<20)
			require.NoError(t, err)
			require.True(t, complete)
			require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(have))
			checkOpened(t, x.state, x.query, want)
		})
	}
}

// checkOpened opens a proof of a query and compares all that it says with the state.
func checkOpened(t *testing.T, state *Trie, q Query, proof []byte) *Opened {
	t.Helper()
	var known []Entry
	for _, e := range entriesOf(state) {
		if slices.Contains(q.Keys, e.Key) || q.inRange(e.Key) {
			if q.Known != KnownEntries {
				e.Value = nil
			}
			known = append(known, e)
		}
	}
	o, err := q.Open(state.Root(), proof, known...)
	require.NoError(t, err)
	check := func(key Key) {
		want, present := state.Get(key)
		have, is, err := o.Get(key)
		require.NoError(t, err)
		require.Equal(t, present, is)
		require.True(t, bytes.Equal(want, have))
		nodes, err := o.Prove(key)
		require.NoError(t, err)
		require.Equal(t, state.Prove(key), nodes)
	}
	for _, key := range q.Keys {
		check(key)
	}
	for _, r := range q.Ranges {
		var want []Entry
		for _, e := range entriesOf(state) {
			if r.has(e.Key) {
				want = append(want, e)
				check(e.Key)
			}
		}
		have, err := o.Entries(r.First, r.Last)
		require.NoError(t, err)
		require.Len(t, have, len(want))
		for i := range want {
			require.Equal(t, want[i].Key, have[i].Key)
			require.True(t, bytes.Equal(want[i].Value, have[i].Value))
		}
	}
	return o
}

func entriesOf(state *Trie) (all []Entry) {
	var walk func(n *trieNode)
	walk = func(n *trieNode) {
		switch {
		case n == nil:
		case n.entry != nil:
			all = append(all, Entry{n.entry.key, n.entry.value})
		default:
			walk(n.children[0])
			walk(n.children[1])
		}
	}
	walk(state.node())
	return all
}

// randomState returns a state whose keys share long prefixes, and a query of it.
func randomState(r *rand.Rand) (state *Trie, q Query) {
	key := func() (k Key) {
		k[0], k[1], k[30] = byte(r.IntN(4))<<6, byte(r.IntN(3)), byte(r.IntN(3))
		return k
	}
	for range r.IntN(40) {
		size := []int{0, 5, 32, 33, 127, 128, 20000}[r.IntN(7)]
		state = state.Set(key(), bytes.Repeat([]byte{byte(r.IntN(256))}, size))
	}
	var bounds []Key
	for range 2 * r.IntN(4) {
		bounds = append(bounds, key())
	}
	slices.SortFunc(bounds, func(a, b Key) int { return bytes.Compare(a[:], b[:]) })
	for i := 0; i+1 < len(bounds); i += 2 {
		if n := len(q.Ranges); n == 0 || bytes.Compare(q.Ranges[n-1].Last[:], bounds[i][:]) < 0 {
			q.Ranges = append(q.Ranges, KeyRange{bounds[i], bounds[i+1]})
		}
	}
	for range r.IntN(5) {
		if k := key(); !q.inRange(k) && !slices.Contains(q.Keys, k) {
			q.Keys = append(q.Keys, k)
		}
	}
	slices.SortFunc(q.Keys, func(a, b Key) int { return bytes.Compare(a[:], b[:]) })
	q.Known = Known(r.IntN(3))
	return state, q
}

// Proofs of random queries of random states open what was asked, also if they were cut because
// of their size. The cut parts make up the whole.
func TestCompactQueries(t *testing.T) {
	cuts := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		state, q := randomState(r)
		limit := 1 << 30
		if seed%2 == 0 {
			limit = r.IntN(3000)
		}
		for {
			proof, complete, last, err := state.ProveQuery(q, limit)
			require.NoError(t, err)
			if complete {
				checkOpened(t, state, q, proof)
				break
			}
			cuts++
			checkOpened(t, state, q.Through(last), proof)
			rest := Query{Known: q.Known}
			for _, r := range q.Ranges {
				if bytes.Compare(r.Last[:], last[:]) <= 0 {
					continue
				}
				if bytes.Compare(r.First[:], last[:]) <= 0 {
					r.First = after(last)
				}
				rest.Ranges = append(rest.Ranges, r)
			}
			q = rest
		}
	}
	require.Greater(t, cuts, 50)
}

// after returns the next key.
func after(k Key) Key {
	for i := len(k) - 1; ; i-- {
		if k[i]++; k[i] != 0 {
			return k
		}
	}
}

// A key that a proof does not open is an error, and neither a value nor an absence.
func TestCompactOpensNoMore(t *testing.T) {
	state := stateOf(five...)
	proof, _, _, err := state.ProveQuery(Query{Keys: []Key{fiveKey("110")}}, 0)
	require.NoError(t, err)
	o, err := Open(state.Root(), proof)
	require.NoError(t, err)
	for _, bits := range []string{"000", "001", "010", "100", "111"} {
		_, _, err := o.Get(fiveKey(bits))
		require.ErrorIs(t, err, ErrProof, bits)
		_, err = o.Prove(fiveKey(bits))
		require.ErrorIs(t, err, ErrProof, bits)
	}
	all := PrefixRange(nil)
	_, err = o.Entries(all.First, all.Last)
	require.ErrorIs(t, err, ErrProof)
	for _, q := range []Query{{Keys: []Key{fiveKey("111")}}, {Ranges: []KeyRange{PrefixRange(nil)}}, {Ranges: []KeyRange{{fiveKey("110"), fiveKey("111")}}}} {
		_, err = q.Open(state.Root(), proof)
		require.ErrorIs(t, err, ErrProof)
	}
	_, err = Open(common.Hash{1}, proof)
	require.ErrorIs(t, err, ErrProof)
}

// Each proof has one encoding: a proof with any bit changed, or cut, is refused.
func TestEveryBitOfACompactProofMatters(t *testing.T) {
	tried := 0
	for seed := range uint64(40) {
		state, q := randomState(rand.New(rand.NewPCG(seed, 2)))
		q.Known = KnownNone
		proof, _, _, err := state.ProveQuery(q, 200)
		require.NoError(t, err)
		if len(proof) > 500 || tried == 8 {
			continue
		}
		tried++
		for bit := range 8 * len(proof) {
			changed := slices.Clone(proof)
			changed[bit/8] ^= 1 << (bit % 8)
			_, err := Open(state.Root(), changed)
			if !errors.Is(err, ErrProof) {
				t.Fatalf("bit %d of %x: %v", bit, proof, err)
			}
		}
		for n := range proof {
			_, err := Open(state.Root(), proof[:n])
			require.ErrorIs(t, err, ErrProof)
		}
		_, err = Open(state.Root(), append(slices.Clone(proof), 0))
		require.ErrorIs(t, err, ErrProof)
	}
	require.Equal(t, 8, tried)
}

// The rules of the canonical form, each broken in a proof whose hashes fit.
func TestCompactForm(t *testing.T) {
	key, long := fiveKey("110"), bytes.Repeat([]byte{7}, 40)
	one := (*Trie)(nil).Set(key, long)
	hash := leaf(key, long)
	raw := hex.EncodeToString
	suffix, value := raw(key[:]), raw(long)
	zeros := strings.Repeat("00", 32)
	for name, x := range map[string]struct {
		proof string
		want  bool
	}{
		"a long value":            {"00 c0 21" + suffix + "28" + value, true},
		"its length in two bytes": {"00 c0 21" + suffix + "8028" + value, false},
		"only its hash":           {"00 c0 22" + raw(hash[32:]) + suffix, true},
		"another version":         {"01 c0 21" + suffix + "28" + value, false},
		"padding of tags":         {"00 c1 21" + suffix + "28" + value, false},
		"a kind that is not":      {"00 c0 23" + suffix, false},
		"two kinds":               {"00 c0 c0", false},
		"an elided value's form":  {"00 c0 81", false},
		"no known key":            {"00 c0 61 28" + value, false},
		"the root closed":         {"00 40" + one.Root().Hex()[2:], true},
		"the hash of zeros":       {"00 40" + zeros, false},
		"nothing":                 {"", false},
	} {
		raw, err := hex.DecodeString(strings.ReplaceAll(x.proof, " ", ""))
		require.NoError(t, err)
		_, err = Open(one.Root(), raw)
		require.Equal(t, x.want, err == nil, "%s: %v", name, err)
	}
	o, err := Open(one.Root(), common.FromHex("00c061"+"28"+value), Entry{Key: key})
	require.NoError(t, err)
	have, present, err := o.Get(key)
	require.NoError(t, err)
	require.True(t, present)
	require.Equal(t, long, have)
	_, err = Open(one.Root(), common.FromHex("00c061"+"28"+value), Entry{Key: key}, Entry{Key: fiveKey("111")})
	require.ErrorIs(t, err, ErrProof, "two keys fit")
	o, err = Open(one.Root(), common.FromHex("00c080"), Entry{key, long})
	require.NoError(t, err)
	_, _, err = o.Get(key)
	require.NoError(t, err)
	o, err = Open(one.Root(), common.FromHex("00c022"+hex.EncodeToString(hash[32:])+suffix))
	require.NoError(t, err)
	_, present, err = o.Get(key)
	require.ErrorIs(t, err, ErrProof)
	require.True(t, present)

	two := stateOf("000", "001")
	left, right := two.node().children[0].root(), two.node().children[1].root()
	require.Zero(t, right, "both are below the left child")
	for name, proof := range map[string]string{
		"two closed children": "00 14" + raw(short(left).Bytes()) + zeros,
		"two empty children":  "00 28",
		"a leaf beside none":  "00 38 09",
	} {
		_, err := Open(two.Root(), common.FromHex(strings.ReplaceAll(proof, " ", "")))
		require.ErrorIs(t, err, ErrProof, name)
	}
	// The first bit of a left child is lost, so that its hash has one form.
	_, err = Open(two.Root(), append([]byte{0, 0b00011000}, short(left).Bytes()...))
	require.NoError(t, err)
	set := left
	set[0] |= leafBit
	_, err = Open(two.Root(), append([]byte{0, 0b00011000}, set.Bytes()...))
	require.ErrorIs(t, err, ErrProof)
	// A branch at depth 248.
	_, err = Open(two.Root(), make([]byte, 200))
	require.ErrorIs(t, err, ErrProof)
}

func TestQueryValidate(t *testing.T) {
	a, b, c := fiveKey("001"), fiveKey("100"), fiveKey("110")
	for i, q := range []Query{
		{Keys: []Key{b, a}}, {Keys: []Key{a, a}}, {Ranges: []KeyRange{{b, a}}}, {Ranges: []KeyRange{{a, b}, {b, c}}},
		{Ranges: []KeyRange{{b, c}, {a, a}}}, {Keys: []Key{b}, Ranges: []KeyRange{{a, c}}}, {Known: 3},
	} {
		require.ErrorIs(t, q.Validate(), ErrQuery, i)
		_, _, _, err := stateOf(five...).ProveQuery(q, 1)
		require.ErrorIs(t, err, ErrQuery, i)
	}
	require.NoError(t, (&Query{Keys: []Key{a}, Ranges: []KeyRange{{b, c}}}).Validate())
	require.Equal(t, KeyRange{Key{1, 2}, Key(append([]byte{1, 2}, bytes.Repeat([]byte{0xff}, 29)...))}, PrefixRange([]byte{1, 2}))
}

// FuzzCompact opens any bytes. A proof that is opened shows nothing that the state does not have.
func FuzzCompact(f *testing.F) {
	state := stateOf(five...)
	for _, keys := range [][]Key{nil, {fiveKey("110")}, {fiveKey("010"), fiveKey("101")}} {
		proof, _, _, err := state.ProveQuery(Query{Keys: keys}, 0)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(proof)
	}
	f.Fuzz(func(t *testing.T, proof []byte) {
		o, err := Open(state.Root(), proof)
		if err != nil {
			return
		}
		for _, bits := range append([]string{"010", "011", "101"}, five...) {
			value, present, err := o.Get(fiveKey(bits))
			want, is := state.Get(fiveKey(bits))
			if err == nil && (present != is || !bytes.Equal(value, want)) {
				t.Fatalf("key %s: %q, %t", bits, value, present)
			}
		}
	})
}
