package jamq

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// ErrInvalidBlock is wrapped by every error of [Block.Validate].
var ErrInvalidBlock = errors.New("jamq: invalid block")

// Block is a JAM block as a builder needs it: the parts of the block that concern work
// packages. A host fills in a Block from the header and the extrinsic of the imported
// block. A host that also has the posterior state can add the accumulated packages.
// Most packages in a block belong to other rollups.
//
// A JAM header has no height. The height of a block is its number of ancestors.
type Block struct {
	// Hash identifies the block.
	Hash HeaderHash
	// Parent is the hash of the parent block. It is zero only for the genesis of a chain.
	Parent HeaderHash
	// ParentStateRoot is the state root after the parent. The header of this block is the
	// first that contains it (H_r, Gray Paper 5.8). Zero means that the host does not know
	// the root; the chain view then cannot return it for a package that is anchored at the
	// parent.
	ParentStateRoot common.Hash
	// Slot is the slot in which the block was authored. It is greater than the parent's
	// slot.
	Slot Slot
	// Reported contains the work reports that this block puts on cores, which are in its
	// guarantees extrinsic (E_G).
	Reported []Report
	// Available contains the cores whose report became available in this block, because
	// more than two thirds of the validators assured it in the assurances extrinsic (E_A,
	// Gray Paper 11.16). [AvailableCores] computes them. The block frees these cores before
	// it puts the reports in Reported on cores, so a block can free a core and use it
	// again.
	Available []CoreIndex
	// Condemned contains the hashes of the work reports that the verdicts in the
	// disputes extrinsic (E_D) judged bad or doubtful. If such a report is on a
	// core, the block removes it from the core (GP 10.15).
	Condemned []common.Hash
	// CoresCleared is true if this block changes the number of active validators. Reports
	// that do not become available in this block then leave their cores before those in
	// Reported are added (Gray Paper 0.8.0, 11.18). It is always false before Gray Paper
	// 0.8.0.
	CoresCleared bool
	// AccumulatedKnown is true if the host has read Accumulated from the posterior state
	// (C(15) in the Gray Paper). If it is false, Accumulated is ignored, and the
	// accumulated packages are computed from reports and availability. The computed result
	// is exact, unless the gas limit of a block defers a report in the ready queue (Gray
	// Paper 12.18).
	AccumulatedKnown bool
	// Accumulated contains the packages that were accumulated in this block, in order. The
	// service may nevertheless have rejected the content of such a package.
	Accumulated []PackageHash
}

// Report is a work report in a guarantee of a block.
type Report struct {
	// Hash is the hash of the work report, which verdicts use to refer to the report. It is
	// zero if the host does not follow verdicts.
	Hash common.Hash
	// Package is the reported package.
	Package PackageHash
	// SegmentRoot is the root of the segments that the package exports. Other packages use
	// it to import them. It may be zero.
	SegmentRoot common.Hash
	// Core is the core that the report occupies from this block on.
	Core CoreIndex
	// Anchor is the anchor in the package's refine context.
	Anchor HeaderHash
	// Prerequisites are the packages that must be accumulated before this one. They come
	// from its refine context and from its segment-root lookups, and there are at most
	// ChainSpec.MaxDependencies.
	Prerequisites []PackageHash
}

// CountAssurances returns, for each core, how many validators have assured that their
// part of the core's report is available to them. Each bitfield is the assurance of one
// validator: bit i%8 of byte i/8, lowest bit first, stands for core i. Bits after the
// last core are ignored.
func CountAssurances(cores int, bitfields [][]byte) []uint16 {
	counts := make([]uint16, cores)
	for core := range counts {
		for _, field := range bitfields {
			if i := core / 8; i < len(field) && field[i]>>(core%8)&1 == 1 {
				counts[core]++
			}
		}
	}
	return counts
}

// AvailableCores returns the cores whose reports become available in a block, because
// more than two thirds of the validators assure them (Gray Paper 11.16). The cores are
// in ascending order. validators is the number of active validators, and assured is the
// result of [CountAssurances] for the block.
func AvailableCores(validators int, assured []uint16) []CoreIndex {
	var cores []CoreIndex
	for core, votes := range assured {
		if 3*int(votes) > 2*validators {
			cores = append(cores, CoreIndex(core))
		}
	}
	return cores
}

// Validate returns an error that wraps [ErrInvalidBlock] if no block of the given chain
// can have this content (Gray Paper 11.3), for one of these reasons:
//
//   - The hash is zero, or the block is its own parent.
//   - A core does not exist.
//   - Two reports are on one core.
//   - A report has too many prerequisites.
func (b *Block) Validate(spec *ChainSpec) error {
	if b.Hash.IsZero() {
		return fmt.Errorf("%w: hash is zero", ErrInvalidBlock)
	}
	if b.Hash == b.Parent {
		return fmt.Errorf("%w: %s is its own parent", ErrInvalidBlock, b.Hash)
	}
	// The reports in a JAM block are sorted by core (Gray Paper 11.24), so the check for
	// two reports on one core usually needs no set.
	sorted := true
	for i := range b.Reported {
		r := &b.Reported[i]
		if int(r.Core) >= spec.Cores {
			return fmt.Errorf("%w: %s reports %s on core %d, want below %d", ErrInvalidBlock, b.Hash, r.Package, r.Core, spec.Cores)
		}
		if n := len(r.Prerequisites); n > spec.MaxDependencies {
			return fmt.Errorf("%w: %s reports %s with %d prerequisites, want at most %d", ErrInvalidBlock, b.Hash, r.Package, n, spec.MaxDependencies)
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
