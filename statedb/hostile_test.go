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
// size a witness may allocate.
const (
	megabyte    = 1 << 20
	hostileCost = 20
)

// hostile writes a proof that costs its reader as much as possible. Every key is
// alone in its stem from the place on at which it differs from its neighbors.
type hostile struct {
	shape // how to
	proofWriter
}

// shape is a kind of hostile proof.
type shape struct {
	depth    int  // of the stems of keys; 0: as shallow as can be
	hashes   int  // distance of nodes with one; 0: only the deepest has one
	opened   bool // the keys are absent, and other stems are opened
	brothers int  // hashes in a stem, at most 8
	aside    bool // all keys begin with three zero bits
}

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

// hostileEntries returns n entries of a kind in the order of keys. If they are
// aside, all keys begin with three zero bits.
func hostileEntries(kind AccessKind, n int, aside bool) (entries []Entry) {
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
		if a = a.derive(); !aside || a.Key[0] < 0x20 {
			entries = append(entries, Entry{Access: a})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return a.Key.Compare(b.Key) })
	return entries
}

// hostileWitness returns an encoded witness with a proof of a shape for n keys
// of a kind.
func hostileWitness(t *testing.T, s shape, kind AccessKind, n int) []byte {
	w := &Witness{Entries: hostileEntries(kind, n, s.aside)}
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
	{"chains on one side", shape{depth: 248, aside: true}, []AccessKind{BasicDataAccess}},
	{"a hash beside each tenth", shape{depth: 248, hashes: 10}, []AccessKind{BasicDataAccess}},
	{"a hash beside each third", shape{depth: 248, hashes: 3}, []AccessKind{BasicDataAccess}},
	{"a hash beside each other", shape{depth: 248, hashes: 2}, []AccessKind{BasicDataAccess}},
	{"a hash beside each", shape{depth: 248, hashes: 1}, []AccessKind{BasicDataAccess}},
	{"short chains", shape{depth: 24}, []AccessKind{BasicDataAccess}},
	{"shallow stems", shape{}, []AccessKind{RawAccess, BasicDataAccess, CodeChunkAccess}},
	{"shallow stems on one side", shape{aside: true}, []AccessKind{BasicDataAccess}},
	{"stems with a hash", shape{brothers: 1}, []AccessKind{BasicDataAccess}},
	{"stems with a hash on one side", shape{brothers: 1, aside: true}, []AccessKind{BasicDataAccess}},
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
			return (&Witness{Entries: hostileEntries(BasicDataAccess, n, false), Proof: proof}).Encode()
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

// A made-up witness of a megabyte is refused, and allocates at most 20 MB until
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

// Writes that are not those of a witness are refused at the same cost, also if the witness is of
// the state. The shapes are those with the most entries.
func TestWrongWritesCostLittle(t *testing.T) {
	for _, s := range []shape{{}, {aside: true}} {
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
