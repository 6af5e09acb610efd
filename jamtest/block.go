package jamtest

import (
	"encoding/binary"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// block is a block with the state after it. It does not change once it is in the chain,
// so its children may share its slices.
type block struct {
	jamq.Block
	height uint64
	parent *block // nil for genesis, and for the oldest block that was kept
	cores  []*report
	ready  []waiting
	// active is the number of active cores. epochs is the number of epochs with blocks
	// since the epoch of genesis, up to this block.
	active, epochs int

	// stateRoot and beefyRoot are the roots after this block. state is the state behind
	// these roots; it is nil without Config.Genesis.
	stateRoot, beefyRoot common.Hash
	state                *state

	// The packages that left a core or the ready queue in this block, by cause. jamq.Block
	// has no fields for them.
	available, cleared, timedOut, expired []jamq.PackageHash
}

// report is a work report that occupies a core, with its package.
type report struct {
	hash        common.Hash
	pkg         *Package
	reportedAt  jamq.Slot
	availableAt jamq.Slot // jamq.MaxSlot means never
}

// waiting is an entry of the ready queue: an available package, and those of its
// prerequisites that are not accumulated yet.
type waiting struct {
	pkg   *Package
	since jamq.Slot
	unmet []jamq.PackageHash
}

// within returns the block at the given height on the chain that ends in b, which may
// be b itself. It returns nil if there is no such block or the chain has forgotten it.
func (b *block) within(height uint64) *block {
	if height > b.height {
		return nil
	}
	for b != nil && b.height > height {
		b = b.parent
	}
	return b
}

// has reports whether x is b or one of the n-1 blocks before it.
func (b *block) has(x *block, n int) bool {
	return x.height <= b.height && b.height-x.height < uint64(n) && b.within(x.height) == x
}

// newest returns the block in the list that is b or one of the n-1 blocks before b, or
// nil. At most one block fits, because a chain reports and accumulates each package at
// most once.
func (b *block) newest(n int, of []*block) *block {
	for _, x := range of {
		if b.has(x, n) {
			return x
		}
	}
	return nil
}

// seal computes the hash of a finished block over its whole content.
func (b *block) seal() {
	data := binary.LittleEndian.AppendUint32(nil, uint32(b.Slot))
	for _, r := range b.Reported {
		data = binary.LittleEndian.AppendUint16(append(data, r.Package[:]...), uint16(r.Core))
	}
	data = append(data, '/')
	for _, core := range b.Available {
		data = binary.LittleEndian.AppendUint16(data, uint16(core))
	}
	data = append(data, '/')
	for _, h := range b.Condemned {
		data = append(data, h[:]...)
	}
	for _, h := range b.Accumulated {
		data = append(data, h[:]...)
	}
	if b.CoresCleared {
		data = append(data, '!')
	}
	b.Hash = digest("block", b.Parent[:], data)
}

// digest is the hash function of the simulated chain. The kind, such as "block" or
// "package", makes sure that different things have different hashes.
func digest(kind string, data ...[]byte) [32]byte {
	return blake2b.Sum256(slices.Concat(append([][]byte{[]byte("jamtest " + kind + " ")}, data...)...))
}

// standIns derives placeholders for the roots after a block from the block's hash. They
// are for chains without Config.Genesis, which simulate no state.
func standIns(h jamq.HeaderHash) (stateRoot, beefyRoot common.Hash) {
	return digest("state", h[:]), digest("beefy", h[:])
}
