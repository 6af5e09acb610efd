package jamq

import (
	"errors"
	"fmt"
)

// ErrInvalidBlock is wrapped by every error of [Block.Validate].
var ErrInvalidBlock = errors.New("jamq: invalid block")

// Block is one imported JAM block as a builder sees it: what it says about work packages, and nothing else.
// A host fills it from the block and, for Accumulated, from the accumulation history in the posterior state
// (state chapter C(15)). Most packages in it belong to other rollups.
//
// The header holds no height; whoever needs one counts parents.
type Block struct {
	// Hash identifies the block.
	Hash HeaderHash
	// Parent is the hash of the block before it; zero only for a chain's genesis.
	Parent HeaderHash
	// Slot is the time slot in which it was authored, greater than the parent's.
	Slot Slot
	// Reported are the work reports that its guarantees extrinsic (E_G) puts on cores.
	Reported []Report
	// Available are the cores whose report became available in this block: more than two thirds of the
	// validators assured it in this block's assurances extrinsic (E_A, GP 11.16).
	// They are freed before Reported takes effect, so one block may free a core and fill it again.
	Available []CoreIndex
	// Cleared are the cores whose report a verdict of this block's disputes extrinsic (E_D) removed (GP 10.15).
	Cleared []CoreIndex
	// Accumulated are the packages accumulated in this block, in the order of accumulation.
	// It says that the package went through, not that its service liked it.
	Accumulated []PackageHash
}

// Report is a work report as a guarantee in a block shows it: which package, on which core, in what context.
type Report struct {
	// Package is the reported package.
	Package PackageHash
	// Core is the core that it occupies from now on.
	Core CoreIndex
	// Anchor is the anchor block of its refine context.
	Anchor HeaderHash
	// Prerequisites are the packages that must be accumulated before it: those of its refine context and those
	// behind its segment-root lookups.
	Prerequisites []PackageHash
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
	seen := make(map[CoreIndex]PackageHash, len(b.Reported))
	for _, r := range b.Reported {
		if int(r.Core) >= spec.Cores {
			return fmt.Errorf("%w: %s reports %s on core %d, want below %d", ErrInvalidBlock, b.Hash, r.Package, r.Core, spec.Cores)
		}
		if other, taken := seen[r.Core]; taken {
			return fmt.Errorf("%w: %s reports %s and %s on core %d", ErrInvalidBlock, b.Hash, other, r.Package, r.Core)
		}
		seen[r.Core] = r.Package
	}
	for _, cores := range [][]CoreIndex{b.Available, b.Cleared} {
		for _, c := range cores {
			if int(c) >= spec.Cores {
				return fmt.Errorf("%w: %s names core %d, want below %d", ErrInvalidBlock, b.Hash, c, spec.Cores)
			}
		}
	}
	return nil
}
