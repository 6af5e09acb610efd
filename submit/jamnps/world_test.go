package jamnps

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/submit/codec"
)

// world is a chain of real encoded blocks that guarantors of these tests share: it reports what was
// submitted to them, makes it available in the next block, and notes in which order packages were
// accumulated. Signatures and seals are zero.
type world struct {
	mu        sync.Mutex
	codec     *codec.Codec
	spec      jamq.ChainSpec
	blocks    map[jamq.HeaderHash]*worldBlock
	genesis   *worldBlock
	best      *worldBlock
	finalized *worldBlock
	offers    []offer
	seen      map[jamq.PackageHash]bool
	grown     []func(*worldBlock) // called with each block, locked
	lan       *bubble.LAN         // nil: the loopback interface
	accounts  map[statetrie.Key][]byte
	// sets returns the number of validators of an epoch. If it is nil, all epochs have six.
	sets func(epoch jamq.Slot) int
}

type worldBlock struct {
	hash   jamq.HeaderHash
	header codec.Header
	raw    []byte // the whole block
	parent *worldBlock
	height int
	cores  map[jamq.CoreIndex]*parsedPackage // on which reports wait for the next block
	done   []string                          // payloads accumulated so far
	ran    map[jamq.PackageHash]bool
	report map[jamq.PackageHash]int // height
	state  *statetrie.Trie          // after it
	active int                      // validators after it
	votes  []uint16                 // its assurances, by core
}

// root is the state root after the block.
func (b *worldBlock) root() common.Hash { return b.state.Root() }

// offer is a package that a guarantor took.
type offer struct {
	core jamq.CoreIndex
	pkg  *parsedPackage
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, codec.V072)
}

// newWorldOf returns a world whose blocks are those of a version. Packages can be
// sent to one of 0.7.2 only.
func newWorldOf(t testing.TB, version codec.Version) *world {
	t.Helper()
	return newChangingWorld(t, version, jamq.Tiny(), nil)
}

// newChangingWorld returns a world whose epochs have the given numbers of validators: see
// world.sets.
func newChangingWorld(t testing.TB, version codec.Version, spec jamq.ChainSpec, sets func(epoch jamq.Slot) int) *world {
	t.Helper()
	c, err := codec.New(version, spec)
	require.NoError(t, err)
	w := &world{codec: c, spec: spec, sets: sets, blocks: map[jamq.HeaderHash]*worldBlock{}, seen: map[jamq.PackageHash]bool{}, lan: &bubble.LAN{}}
	var genesis codec.Block
	if sets != nil {
		genesis.Header = w.markEpoch(&genesis.Header, sets(1))
	}
	w.genesis = w.sealAs(genesis, &worldBlock{ran: map[jamq.PackageHash]bool{}, report: map[jamq.PackageHash]int{}})
	w.best, w.finalized = w.genesis, w.genesis
	return w
}

// twoWorlds returns two worlds whose guarantors are on the same network.
func twoWorlds(t testing.TB) (a, b *world) {
	t.Helper()
	a, b = newWorld(t), newWorld(t)
	b.lan = a.lan
	return a, b
}

// listen opens a socket at an address, or at any one if addr is "".
func (w *world) listen(addr string) (net.PacketConn, error) {
	if w.lan != nil {
		return w.lan.Listen(addr)
	}
	return net.ListenPacket("udp", cmp.Or(addr, "127.0.0.1:0"))
}

// seal makes a block of its contents.
func (w *world) seal(b codec.Block, n *worldBlock) *worldBlock {
	var err error
	if b.Header.ExtrinsicHash, err = w.codec.ExtrinsicHash(&b.Extrinsic); err != nil {
		panic(err)
	}
	return w.sealAs(b, n)
}

// sealAs makes a block whose header is complete. The genesis header is not made of a block: its
// extrinsic hash is zero.
func (w *world) sealAs(b codec.Block, n *worldBlock) *worldBlock {
	var err error
	if n.raw, err = w.codec.Encode(&b); err != nil {
		panic(err)
	}
	if n.hash, err = w.codec.HeaderHash(&b.Header); err != nil {
		panic(err)
	}
	n.header = b.Header
	next := 6
	if n.active = 6; w.sets != nil {
		epoch := b.Header.Slot / w.spec.EpochLength
		n.active, next = w.sets(epoch), w.sets(epoch+1)
	}
	for chapter := range uint8(16) {
		n.state = n.state.Set(statetrie.ChapterKey(chapter), binary.LittleEndian.AppendUint32(n.hash[:], uint32(chapter)))
	}
	n.state = n.state.Set(statetrie.ChapterKey(3), w.chapter3(n))
	n.state = n.state.Set(statetrie.ChapterKey(entropyChapter), make([]byte, entropySize))
	n.state = n.state.Set(statetrie.ChapterKey(statetrie.ChapterValidators), w.set(n.active))
	n.state = n.state.Set(statetrie.ChapterKey(statetrie.ChapterSafrole), append(w.set(next), make([]byte, 144)...))
	for key, value := range w.accounts {
		n.state = n.state.Set(key, value)
	}
	w.blocks[n.hash] = n
	for _, f := range w.grown {
		f(n)
	}
	return n
}

// set encodes a set of validators as the state has it.
func (w *world) set(n int) (raw []byte) {
	if w.codec.Version() >= codec.V080 {
		raw = codec.AppendNatural(raw, uint64(n))
	}
	return append(raw, someValidators(n)...)
}

// markEpoch returns a header with an epoch mark of n validators. The types of the mark are not
// exported, so that its bytes are written here: a flag, two hashes, the number, and two keys for
// each validator.
func (w *world) markEpoch(h *codec.Header, n int) codec.Header {
	raw, err := w.codec.Encode(h)
	if err != nil {
		panic(err)
	}
	const flag = 3*32 + 4
	mark := append(codec.AppendNatural(append([]byte{1}, make([]byte, 2*32)...), uint64(n)), make([]byte, n*2*32)...)
	marked, err := codec.Decode[codec.Header](w.codec, slices.Concat(raw[:flag], mark, raw[flag+1:]))
	if err != nil {
		panic(err)
	}
	return marked
}

// effect returns the effect of a block according to the codec.
func (w *world) effect(b *worldBlock) *codec.Effect {
	block, err := codec.Decode[codec.Block](w.codec, b.raw)
	if err != nil {
		panic(err)
	}
	e, err := w.codec.EffectOf(&block)
	if err != nil {
		panic(err)
	}
	return &e
}

func beefyRootOf(h jamq.HeaderHash) [32]byte { return blake2b.Sum256(append([]byte("beefy"), h[:]...)) }

// grow adds a block to a parent, the given number of slots later. It becomes
// the best block if it is the highest.
func (w *world) grow(parent *worldBlock, slots jamq.Slot) *worldBlock {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.growLocked(parent, slots)
}

func (w *world) growLocked(parent *worldBlock, slots jamq.Slot) *worldBlock {
	n := &worldBlock{parent: parent, height: parent.height + 1, cores: map[jamq.CoreIndex]*parsedPackage{}, done: slices.Clone(parent.done), ran: map[jamq.PackageHash]bool{}, report: map[jamq.PackageHash]int{}}
	for p := range parent.ran {
		n.ran[p] = true
	}
	for p, h := range parent.report {
		n.report[p] = h
	}
	b := codec.Block{Header: codec.Header{Parent: parent.hash, ParentStateRoot: parent.root(), Slot: parent.header.Slot + slots}}
	bits := byte(0)
	for core := range parent.cores {
		bits |= 1 << core
	}
	for range w.spec.Cores { // as many rounds as one can wait for another
		for core := range jamq.CoreIndex(w.spec.Cores) {
			p := parent.cores[core]
			if p != nil && !n.ran[p.hash] && !slices.ContainsFunc(p.context.Prerequisites, func(need jamq.PackageHash) bool { return !n.ran[need] }) {
				n.ran[p.hash] = true
				n.done = append(n.done, string(p.payload))
			}
		}
	}
	signers := uint16(5)
	if w.sets != nil {
		// Between one too few and all, for one core after the other.
		signers = uint16(parent.active*2/3 + n.height%3)
		signers = min(signers, uint16(parent.active))
		bits = 1 << (n.height / 3 % w.spec.Cores)
		n.votes = make([]uint16, w.spec.Cores)
		n.votes[n.height/3%w.spec.Cores] = signers
		if epoch := b.Header.Slot / w.spec.EpochLength; epoch > parent.header.Slot/w.spec.EpochLength {
			b.Header = w.markEpoch(&b.Header, w.sets(epoch+1))
		}
	}
	for v := range signers {
		b.Extrinsic.Assurances = append(b.Extrinsic.Assurances, codec.Assurance{Anchor: parent.hash, Bitfield: []byte{bits}, Validator: v})
	}
	w.offers = slices.DeleteFunc(w.offers, func(o offer) bool {
		if n.cores[o.core] != nil || !w.reportable(n, o.pkg) {
			return false
		}
		n.cores[o.core], n.report[o.pkg.hash] = o.pkg, n.height
		b.Extrinsic.Guarantees = append(b.Extrinsic.Guarantees, codec.Guarantee{Slot: b.Header.Slot, Report: codec.WorkReport{
			Package: codec.PackageSpec{Hash: o.pkg.hash}, Context: o.pkg.context, Core: o.core,
		}})
		return true
	})
	w.seal(b, n)
	if n.height > w.best.height {
		w.best = n
	}
	return n
}

// reportable is rules R1 to R3, as far as one chain without gas needs them.
func (w *world) reportable(n *worldBlock, p *parsedPackage) bool {
	if _, before := n.report[p.hash]; before {
		return false
	}
	recent := false
	for at, i := n.parent, 0; at != nil && i < w.spec.RecentHistory; at, i = at.parent, i+1 {
		recent = recent || at.hash == p.context.Anchor && at.root() == p.context.StateRoot
	}
	for _, need := range p.context.Prerequisites {
		if h, ok := n.report[need]; !ok || n.height-h > w.spec.RecentHistory || !n.ran[need] && n.report[need] != n.height {
			return false
		}
	}
	return recent && p.context.BeefyRoot == beefyRootOf(p.context.Anchor)
}

// finalize makes the block at the given distance below the best one final.
func (w *world) finalize(below int) *worldBlock {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.best
	for ; below > 0 && at.parent != nil; below-- {
		at = at.parent
	}
	if at.height > w.finalized.height {
		w.finalized = at
	}
	return w.finalized
}

// chapter3 is the recent history after a block, written from the page: var[(header, peak, state
// root, var[(package, segment root)])] ++ var[optional peak].
func (w *world) chapter3(n *worldBlock) []byte {
	var chain []*worldBlock
	for at := n; at != nil && len(chain) < w.spec.RecentHistory; at = at.parent {
		chain = append(chain, at)
	}
	out := []byte{byte(len(chain))}
	for i := len(chain) - 1; i >= 0; i-- {
		at := chain[i]
		beefy, state := beefyRootOf(at.hash), common.Hash{}
		if i > 0 {
			state = at.root()
		}
		out = append(append(append(out, at.hash[:]...), beefy[:]...), state[:]...)
		out = append(out, 0)
	}
	return append(out, 2, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32)
}

// parsedPackage is the part of a package that a guarantor uses.
type parsedPackage struct {
	hash    jamq.PackageHash
	context jamq.RefineContext
	payload []byte
	sizes   []uint32 // of its extrinsics
	imports int
}

var errParse = errors.New("not a work package")

// parsePackage takes a package apart by its offsets, as the page lists them; it shares nothing with
// submit/codec.
func parsePackage(raw []byte) (p *parsedPackage, err error) {
	defer func() {
		if recover() != nil { // out of range
			p, err = nil, errParse
		}
	}()
	at := 0
	take := func(n int) []byte {
		at += n
		return raw[at-n : at]
	}
	length := func() int { // only what these tests need: up to 2^21
		first := int(take(1)[0])
		switch {
		case first < 128:
			return first
		case first < 192:
			return (first-128)<<8 + int(take(1)[0])
		case first < 224:
			low := take(2)
			return (first-192)<<16 + int(low[1])<<8 + int(low[0])
		}
		panic("too long")
	}
	p = &parsedPackage{hash: blake2b.Sum256(raw)}
	take(4 + 32) // authorizer's host and code
	copy(p.context.Anchor[:], take(32))
	copy(p.context.StateRoot[:], take(32))
	copy(p.context.BeefyRoot[:], take(32))
	copy(p.context.LookupAnchor[:], take(32))
	p.context.LookupAnchorSlot = jamq.Slot(binary.LittleEndian.Uint32(take(4)))
	for range length() {
		p.context.Prerequisites = append(p.context.Prerequisites, jamq.PackageHash(take(32)))
	}
	take(length()) // token
	take(length()) // configuration
	items := length()
	for range items {
		take(4 + 32 + 8 + 8 + 2)
		p.payload = append(p.payload, take(length())...)
		for range length() {
			take(32 + 2)
			p.imports++
		}
		for range length() {
			take(32)
			p.sizes = append(p.sizes, binary.LittleEndian.Uint32(take(4)))
		}
	}
	if items == 0 || at != len(raw) {
		return nil, fmt.Errorf("%w: %d items, %d of %d bytes", errParse, items, at, len(raw))
	}
	return p, nil
}

// offer takes a package as a guarantor does that ignores what it has seen.
func (w *world) offer(core jamq.CoreIndex, p *parsedPackage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.seen[p.hash] {
		w.seen[p.hash] = true
		w.offers = append(w.offers, offer{core, p})
	}
}
