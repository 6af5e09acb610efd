package jamq

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// ErrInvalidBlock is wrapped by every error of [Block.Validate].
var ErrInvalidBlock = errors.New("jamq: invalid block")

// Block is one imported JAM block as a builder sees it: what it says about work packages, and nothing else.
// A host fills it from the header and the extrinsic alone; a host that also sees the posterior state may add what was
// accumulated. Most packages in it belong to other rollups.
//
// The header holds no height; whoever needs one counts parents.
type Block struct {
	// Hash identifies the block.
	Hash HeaderHash
	// Parent is the hash of the block before it; zero only for a chain's genesis.
	Parent HeaderHash
	// ParentStateRoot is the state root after the parent, which this header is the first to carry (H_r, GP 5.8).
	// Zero if the host does not show it: then nobody can read an anchor's state root from the view.
	ParentStateRoot common.Hash
	// Slot is the time slot in which it was authored, greater than the parent's.
	Slot Slot
	// Reported are the work reports that its guarantees extrinsic (E_G) puts on cores.
	Reported []Report
	// Available are the cores whose report became available in this block: more than two thirds of the
	// validators assured it in this block's assurances extrinsic (E_A, GP 11.16). See [AvailableCores].
	// They are freed before Reported takes effect, so one block may free a core and fill it again.
	Available []CoreIndex
	// Condemned are the hashes of the work reports that a verdict of this block's disputes extrinsic (E_D) found bad
	// or doubtful. They are taken from their cores, if they are on any (GP 10.15).
	Condemned []common.Hash
	// AccumulatedKnown says that Accumulated holds what the posterior state says (state chapter C(15)).
	// If false, Accumulated is not read, and the accumulation is derived from reports and availability, which is
	// exact except where the gas of a block defers a report of the ready queue (GP 12.18).
	AccumulatedKnown bool
	// Accumulated are the packages accumulated in this block, in the order of accumulation.
	// It says that the package went through, not that its service liked it.
	Accumulated []PackageHash
}

// Report is a work report as a guarantee in a block shows it: which package, on which core, in what context.
type Report struct {
	// Hash is the hash of the work report, by which verdicts name it. Zero if the host shows no verdicts.
	Hash common.Hash
	// Package is the reported package.
	Package PackageHash
	// SegmentRoot is the root of the segments that the package exports, by which others import them. May be zero.
	SegmentRoot common.Hash
	// Core is the core that it occupies from now on.
	Core CoreIndex
	// Anchor is the anchor block of its refine context.
	Anchor HeaderHash
	// Prerequisites are the packages that must be accumulated before it: those of its refine context and those
	// behind its segment-root lookups.
	Prerequisites []PackageHash
}

// AvailableCores returns the cores that more than two thirds of the validators assure in one block (GP 11.16),
// ascending. Each bitfield is one validator's assurance: bit i%8 of byte i/8 speaks for core i, the lowest bit first.
// Bits beyond the last core are ignored.
func AvailableCores(spec *ChainSpec, bitfields [][]byte) []CoreIndex {
	var cores []CoreIndex
	for core := range spec.Cores {
		votes := 0
		for _, field := range bitfields {
			if i := core / 8; i < len(field) && field[i]>>(core%8)&1 == 1 {
				votes++
			}
		}
		if 3*votes > 2*spec.Validators {
			cores = append(cores, CoreIndex(core))
		}
	}
	return cores
}

// Validate reports what a block of the given chain can never hold: a core that does not exist, two reports on
// one core, a block that is its own parent. The error wraps [ErrInvalidBlock].
func (b *Block) Validate(spec *ChainSpec) error {
	if b.Hash.IsZero() {
		return fmt.Errorf("%w: hash is zero", ErrInvalidBlock)
	}
	if b.Hash == b.Parent {
		return fmt.Errorf("%w: %s is its own parent", ErrInvalidBlock, b.Hash)
	}
	// Reports are sorted by core (GP 11.24), which makes the common case cheap; a host that sorts otherwise costs a set.
	sorted := true
	for i := range b.Reported {
		r := &b.Reported[i]
		if int(r.Core) >= spec.Cores {
			return fmt.Errorf("%w: %s reports %s on core %d, want below %d", ErrInvalidBlock, b.Hash, r.Package, r.Core, spec.Cores)
		}
		sorted = sorted && (i == 0 || b.Reported[i-1].Core < r.Core)
	}
	if !sorted {
		seen := make(map[CoreIndex]PackageHash, len(b.Reported))
		for _, r := range b.Reported {
			if other, taken := seen[r.Core]; taken {
				return fmt.Errorf("%w: %s reports %s and %s on core %d", ErrInvalidBlock, b.Hash, other, r.Package, r.Core)
			}
			seen[r.Core] = r.Package
		}
	}
	for _, c := range b.Available {
		if int(c) >= spec.Cores {
			return fmt.Errorf("%w: %s makes core %d available, want below %d", ErrInvalidBlock, b.Hash, c, spec.Cores)
		}
	}
	return nil
}
