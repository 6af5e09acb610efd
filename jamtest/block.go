package jamtest

import (
	"encoding/binary"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// block is a block with the state after it. It is immutable once it is in the
// chain, so children may share its parts.
type block struct {
	jamq.Block
	height uint64
	parent *block // nil for genesis, and for the oldest block that was kept
	cores  []*report
	ready  []waiting
	// active is the number of active cores, and epochs that of the epochs with blocks
	// up to this one.
	active, epochs int

	// stateRoot and beefyRoot are the posterior roots. state is the state
	// behind them, with Config.Genesis.
	stateRoot, beefyRoot common.Hash
	state                *state

	// These are the packages that left a core or the ready queue, by cause.
	// jamq.Block does not contain them.
	available, cleared, timedOut, expired []jamq.PackageHash
}

// report is a package on a core.
type report struct {
	hash        common.Hash
	pkg         *Package
	reportedAt  jamq.Slot
	availableAt jamq.Slot // jamq.MaxSlot: never
}

// waiting is an available report in the ready queue, with its open
// prerequisites.
type waiting struct {
	pkg   *Package
	since jamq.Slot
	unmet []jamq.PackageHash
}

// within returns b's ancestor at a height, or b itself. It returns nil if the
// height is above b or was forgotten.
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

// newest returns the block in of that is b or one of the n-1 blocks before it,
// or nil. A package is reported and accumulated at most once per chain, so
// there is at most one.
func (b *block) newest(n int, of []*block) *block {
	for _, x := range of {
		if b.has(x, n) {
			return x
		}
	}
	return nil
}

// seal sets the hash of a finished block, over its whole content.
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

// digest is the hash function of the simulated chain.
func digest(kind string, data ...[]byte) [32]byte {
	return blake2b.Sum256(slices.Concat(append([][]byte{[]byte("jamtest " + kind + " ")}, data...)...))
}

// standIns returns placeholders for the posterior roots of a block if no state
// is simulated.
func standIns(h jamq.HeaderHash) (stateRoot, beefyRoot common.Hash) {
	return digest("state", h[:]), digest("beefy", h[:])
}
