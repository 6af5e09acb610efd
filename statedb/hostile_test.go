package statedb

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/statedb/ubt"
)

// megabyte is the size of a hostile witness, and hostileCost how many times its
// size a witness may allocate: less than docs/witness.md says, so that the limit
// has a margin.
const (
	megabyte    = 1 << 20
	hostileCost = 16
)

// hostile writes a proof that costs its reader as much as possible. Every key is
// alone in its stem from the place on at which it differs from its neighbors.
type hostile struct {
	shape // how to
	proofWriter
}

// shape is a kind of hostile proof.
type shape struct {
	depth    int    // of the stems of keys; 0: as shallow as can be
	hashes   int    // distance of nodes with one; 0: only the deepest has one
	opened   bool   // the keys are absent, and other stems are opened
	brothers int    // hashes in a stem, at most 8
	zeros    uint32 // bits that are 0 in the first four bytes of all keys
}

const (
	// aside puts all keys below one node at depth 3.
	aside = 0xe0000000
	// alternate puts a node with one empty side above most nodes with two sides. Zeros at these six
	// depths, which most nodes are near to, cost almost as much as zeros at every other one.
	alternate = 1<<(31-9) | 1<<(31-11) | 1<<(31-13) | 1<<(31-15) | 1<<(31-17) | 1<<(31-19)
)

// node writes the node above keys, which are distinct.
func (p *hostile) node(keys []Key, depth int) {
	if len(keys) == 1 && depth >= p.depth {
		p.stem(keys[0])
		return
	}
	p.put(1, 2)
	at := slices.IndexFunc(keys, func(k Key) bool { return k[depth/8]>>(7-depth%8)&1 == 1 })
	if at > 0 {
		p.node(keys[:at], depth+1)
		p.node(keys[at:], depth+1)
		return
	}
	p.node(keys, depth+1)
	// Above a single stem there is something beside.
	deepest := len(keys) == 1 && depth == p.depth-1
	p.sibling(deepest || p.shape.hashes > 0 && (p.depth-depth)%p.shape.hashes == 0)
}

func (p *hostile) stem(k Key) {
	if p.shape.opened {
		p.put(3, 2)
		k[StemSize-1] ^= 1 // another stem at the same place
		k[StemSize] = 0
		p.proofWriter.opened = append(p.proofWriter.opened, k)
	} else {
		p.put(2, 2)
	}
	p.span(0, 256, int(k[StemSize]), 0)
}

// span writes one value of a stem, at an index in the span, and hashes beside it.
func (p *hostile) span(first, length, sub, level int) {
	half := length / 2
	switch {
	case length == 1:
		if !p.shape.opened {
			p.put(1, 1)
		}
		p.values = append(p.values, [32]byte{1})
	case sub < first+half:
		p.span(first, half, sub, level+1)
		p.sibling(level < p.brothers)
	default:
		p.sibling(level < p.brothers)
		p.span(first+half, half, sub, level+1)
	}
}

// hostileEntries returns n entries of a kind in the order of keys. The bits in
// zeros are 0 in their first four bytes.
func hostileEntries(kind AccessKind, n int, zeros uint32) (entries []Entry) {
	for i := uint32(0); len(entries) < n; i++ {
		a := Access{Kind: kind}
		binary.BigEndian.PutUint32(a.Address[:], i)
		switch kind {
		case RawAccess:
			a = Access{Kind: kind, Key: basicDataKey(a.Address)}
		case StorageAccess:
			a.Slot[0] = 1
		case CodeChunkAccess:
			a.Chunk = 1 << 20
		}
		if a = a.derive(); binary.BigEndian.Uint32(a.Key[:])&zeros == 0 {
			entries = append(entries, Entry{Access: a})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return a.Key.Compare(b.Key) })
	return entries
}

// hostileWitness returns an encoded witness with a proof of a shape for n keys
// of a kind.
func hostileWitness(t *testing.T, s shape, kind AccessKind, n int) []byte {
	w := &Witness{Entries: hostileEntries(kind, n, s.zeros)}
	var keys []Key
	for i := range w.Entries {
		keys = append(keys, w.Entries[i].Key)
	}
	p := hostile{shape: s}
	p.node(keys, 0)
	w.Proof = p.proof(t)
	return w.Encode()
}

// fitting returns a witness of about a megabyte from a function of its number of
// items.
func fitting(witness func(n int) []byte) []byte {
	const sample = 1000
	return witness(sample * megabyte / len(witness(sample)))
}

// hostileProofs are shapes of proofs, each with the kinds of keys that it is
// tried with.
var hostileProofs = []struct {
	name  string
	shape shape
	kinds []AccessKind
}{
	{"chains to the deepest place", shape{depth: 248}, []AccessKind{RawAccess, BasicDataAccess, StorageAccess}},
	{"chains on one side", shape{depth: 248, zeros: aside}, []AccessKind{BasicDataAccess}},
	{"a hash beside each tenth", shape{depth: 248, hashes: 10}, []AccessKind{BasicDataAccess}},
	{"a hash beside each third", shape{depth: 248, hashes: 3}, []AccessKind{BasicDataAccess}},
	{"a hash beside each other", shape{depth: 248, hashes: 2}, []AccessKind{BasicDataAccess}},
	{"a hash beside each", shape{depth: 248, hashes: 1}, []AccessKind{BasicDataAccess}},
	{"short chains", shape{depth: 24}, []AccessKind{BasicDataAccess}},
	{"shallow stems", shape{}, []AccessKind{RawAccess, BasicDataAccess, CodeChunkAccess}},
	{"shallow stems on one side", shape{zeros: aside}, []AccessKind{BasicDataAccess}},
	{"shallow stems under nodes with an empty side", shape{zeros: alternate}, []AccessKind{BasicDataAccess}},
	{"stems with a hash", shape{brothers: 1}, []AccessKind{BasicDataAccess}},
	{"stems with a hash on one side", shape{brothers: 1, zeros: aside}, []AccessKind{BasicDataAccess}},
	{"stems with hashes", shape{brothers: 8}, []AccessKind{BasicDataAccess}},
	{"other stems", shape{opened: true}, []AccessKind{BasicDataAccess}},
	{"other stems after chains", shape{depth: 247, opened: true}, []AccessKind{BasicDataAccess}},
	{"other stems after chains with hashes", shape{depth: 30, opened: true, brothers: 8, hashes: 2}, []AccessKind{BasicDataAccess}},
}

// hostileWitnesses are witnesses of about a megabyte that decode, and are of no
// state.
func hostileWitnesses(t *testing.T) map[string][]byte {
	proof := new(ubt.Proof)
	witnesses := map[string][]byte{
		"keys without a proof": fitting(func(n int) []byte {
			return (&Witness{Entries: hostileEntries(BasicDataAccess, n, 0), Proof: proof}).Encode()
		}),
		"short code": fitting(func(n int) []byte { return (&Witness{Code: slices.Repeat([][]byte{{1}}, n), Proof: proof}).Encode() }),
		"no code":    fitting(func(n int) []byte { return (&Witness{Code: make([][]byte, n), Proof: proof}).Encode() }),
	}
	for _, p := range hostileProofs {
		for _, kind := range p.kinds {
			witnesses[fmt.Sprintf("%s, %s", p.name, kind)] = fitting(func(n int) []byte { return hostileWitness(t, p.shape, kind, n) })
		}
	}
	return witnesses
}

// A made-up witness of a megabyte is refused, and allocates at most 16 MB until
// then.
func TestHostileWitnessCostsLittle(t *testing.T) {
	for name, b := range hostileWitnesses(t) {
		t.Run(name, func(t *testing.T) {
			require.InEpsilon(t, megabyte, len(b), 0.05)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w, err := ParseWitness(b)
			if err == nil {
				_, err = NewStateless(w, common.Hash{1})
			}
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, ErrWitness)
			cost := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(b))
			t.Logf("allocated %.1f times its size, until: %v", cost, err)
			require.Less(t, cost, float64(hostileCost))
		})
	}
}

// Entries and code that are true, and that no execution needs, cost no more: if the witness is
// accepted, and if its last code is wrong.
func TestSuperfluousEntriesCostLittle(t *testing.T) {
	for _, s := range []shape{{}, {zeros: aside}, {zeros: alternate}} {
		for _, coded := range []bool{false, true} {
			sample, _ := superfluous(t, s, coded, 1000)
			w, root := superfluous(t, s, coded, 1000*megabyte/sample.Size())
			cost, err := costOf(t, w, root)
			require.NoError(t, err)
			t.Logf("accepted: %.1f times the size; shape %+v, code: %v", cost, s, coded)
			require.Less(t, cost, float64(hostileCost), "%+v, code: %v", s, coded)

			w.Code = append(w.Code, []byte("a code of no account"))
			slices.SortFunc(w.Code, func(a, b []byte) int { return keccak(a).Cmp(keccak(b)) })
			cost, err = costOf(t, w, root)
			require.ErrorIs(t, err, ErrWitness)
			require.Less(t, cost, float64(hostileCost), "%+v, code: %v, refused", s, coded)
		}
	}
}

// superfluous returns a witness of the code hashes of n accounts, with or without their code, and
// the root of the state that it is of.
func superfluous(t *testing.T, s shape, coded bool, n int) (*Witness, common.Hash) {
	w := &Witness{Entries: hostileEntries(CodeHashAccess, n, s.zeros)}
	var keys []Key
	for i := range w.Entries {
		keys = append(keys, w.Entries[i].Key)
	}
	p := hostile{shape: s}
	p.node(keys, 0)
	var code [][]byte
	for i := range p.values {
		code = append(code, binary.BigEndian.AppendUint16(nil, uint16(i)))
		p.values[i] = keccak(code[i])
	}
	if coded {
		slices.SortFunc(code, func(a, b []byte) int { return keccak(a).Cmp(keccak(b)) })
		w.Code = code
	}
	w.Proof = p.proof(t)
	tree, err := ubt.Open(&hasher, w.Proof, w.uses())
	require.NoError(t, err)
	return w, tree.Root()
}

// costOf returns how many times its size a witness allocates when it is decoded and checked
// against a root.
func costOf(t *testing.T, w *Witness, root common.Hash) (cost float64, err error) {
	b := w.Encode()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	decoded, err := ParseWitness(b)
	require.NoError(t, err)
	_, err = NewStateless(decoded, root)
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(len(b)), err
}

// Writes that are not those of a witness are refused at the same cost, also if the witness is of
// the state. The shapes are those with the most entries.
func TestWrongWritesCostLittle(t *testing.T) {
	for _, s := range []shape{{}, {zeros: aside}} {
		w, err := ParseWitness(fitting(func(n int) []byte { return hostileWitness(t, s, BasicDataAccess, n) }))
		require.NoError(t, err)
		var writes []Write
		for i := range w.Entries {
			w.Entries[i].Set = true
			writes = append(writes, Write{Access: w.Entries[i].Access, Value: [32]byte{1}})
		}
		tree, err := ubt.Open(&hasher, w.Proof, w.uses())
		require.NoError(t, err)
		b := w.Encode()
		last := slices.Clone(writes)
		last[len(last)-1].Deleted = true
		for name, writes := range map[string][]Write{"none": nil, "one less": writes[1:], "twice": append(writes, writes...), "the last wrong": last} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w, err := ParseWitness(b)
			require.NoError(t, err)
			_, err = Verify(w, tree.Root(), writes)
			runtime.ReadMemStats(&after)
			require.ErrorIs(t, err, ErrWitness)
			require.Less(t, float64(after.TotalAlloc-before.TotalAlloc)/float64(len(b)), float64(hostileCost), "%+v, %s", s, name)
		}
	}
}

// Counts of more items than there are bytes for are refused before anything is
// allocated for the items.
func TestCountsThatLie(t *testing.T) {
	for _, at := range []int{1, 5} { // entries, code
		body := make([]byte, 25)
		body[0] = witnessVersion
		binary.BigEndian.PutUint32(body[at:], 1<<32-1)
		_, err := ParseWitness(append(body, checksum(body)...))
		require.ErrorIs(t, err, ErrWitness)
		require.ErrorContains(t, err, "items of at least")
	}
}
