package codec

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// WorkReport is what guarantors say of a package that they refined (GP 11.2).
type WorkReport struct {
	// Package says which bundle was refined.
	Package PackageSpec
	// Context is the package's refine context.
	Context jamq.RefineContext
	// Core is the core that it is for.
	Core jamq.CoreIndex
	// Authorizer is the authorizer's hash, AuthGasUsed the gas that it took.
	Authorizer  common.Hash
	AuthGasUsed uint64
	// Trace is what the authorizer returned.
	Trace []byte
	// Lookups are the segment roots that it takes packages to have exported, ascending by package.
	Lookups []SegmentLookup
	// Digests are the results, one for each work item.
	Digests []WorkDigest
}

// PackageSpec describes a bundle as it is made available (GP 11.5).
type PackageSpec struct {
	// Hash is the package's, Length the bundle's in bytes.
	Hash   jamq.PackageHash
	Length uint32
	// ErasureRoot and SegmentRoot are the roots of the coded chunks and of the exported segments, SegmentCount their number.
	ErasureRoot, SegmentRoot common.Hash
	SegmentCount             uint16
}

// SegmentLookup says which segment root a package has.
type SegmentLookup struct {
	// Package exported the segments under SegmentRoot.
	Package     jamq.PackageHash
	SegmentRoot common.Hash
}

// WorkDigest is the result of one work item (GP 11.6).
type WorkDigest struct {
	// Service and CodeHash say what refined it, PayloadHash of which payload.
	Service     jamq.ServiceID
	CodeHash    common.Hash
	PayloadHash common.Hash
	// AccumulateGas is the gas that its accumulation may take.
	AccumulateGas uint64
	// Outcome says how it ended; Output is there only for Done.
	Outcome Outcome
	Output  []byte
	// GasUsed, Imports, ExtrinsicCount, ExtrinsicSize (in bytes) and Exports are the load of the refinement.
	GasUsed        uint64
	Imports        uint16
	ExtrinsicCount uint16
	ExtrinsicSize  uint32
	Exports        uint16
}

// Outcome is how the refinement of a work item ended (GP C.34).
type Outcome uint8

// The outcomes; the numbers are those of the encoding.
const (
	// Done: it returned an output.
	Done Outcome = iota
	// OutOfGas: its gas was used up.
	OutOfGas
	// Panicked: the code panicked.
	Panicked
	// BadExports: it exported another number of segments than it had promised.
	BadExports
	// Oversize: the outputs together are too long for a report.
	Oversize
	// BadCode: the service's code is not available.
	BadCode
	// BigCode: the service's code is too long.
	BigCode
)

// String returns the outcome in words.
func (o Outcome) String() string {
	names := [...]string{"done", "out of gas", "panicked", "bad exports", "oversize", "bad code", "big code"}
	if int(o) >= len(names) {
		return fmt.Sprintf("codec.Outcome(%d)", uint8(o))
	}
	return names[o]
}

// Guarantee is a report with the signatures that put it into a block (GP 11.23).
type Guarantee struct {
	// Report is what is guaranteed.
	Report WorkReport
	// Slot is when it was signed.
	Slot jamq.Slot
	// Signatures are the guarantors'.
	Signatures []ValidatorSignature
}

// ValidatorSignature is an Ed25519 signature of a validator.
type ValidatorSignature struct {
	// Validator is the index in the validator set.
	Validator uint16
	Signature [64]byte
}

const (
	lookupSize    = 32 + 32
	leastDigest   = 4 + 32 + 32 + 8 + 1 + 5
	signatureSize = 2 + 64
	leastReport   = 32 + 4 + 32 + 32 + 2 + 4*32 + 4 + 1 + 1 + 32 + 4
)

func (x *WorkReport) code(c *coder) { // GP C.27
	x.Package.code(c)
	context(c, &x.Context)
	natural(c, &x.Core, "core")
	hash(c, &x.Authorizer)
	natural(c, &x.AuthGasUsed, "gas")
	c.blob(&x.Trace)
	sequence(c, &x.Lookups, lookupSize, func(c *coder, l *SegmentLookup) {
		hash(c, &l.Package)
		hash(c, &l.SegmentRoot)
	})
	ascending(c, x.Lookups, "segment-root lookup", func(a, b *SegmentLookup) int { return a.Package.Compare(b.Package) })
	sequence(c, &x.Digests, leastDigest, func(c *coder, d *WorkDigest) { d.code(c) })
}

func (x *PackageSpec) code(c *coder) { // GP C.25
	hash(c, &x.Hash)
	u32(c, &x.Length)
	hash(c, &x.ErasureRoot)
	hash(c, &x.SegmentRoot)
	u16(c, &x.SegmentCount)
}

func (x *WorkDigest) code(c *coder) { // GP C.26
	u32(c, &x.Service)
	hash(c, &x.CodeHash)
	hash(c, &x.PayloadHash)
	u64(c, &x.AccumulateGas)
	u8(c, &x.Outcome)
	switch {
	case x.Outcome == Done:
		c.blob(&x.Output)
	case x.Outcome > BigCode:
		c.fail(fmt.Errorf("%w: outcome %d, want at most %d", ErrNonCanonical, uint8(x.Outcome), uint8(BigCode)))
	case len(x.Output) > 0:
		c.fail(fmt.Errorf("%w: an output of %d bytes, but the outcome is %q", ErrNonCanonical, len(x.Output), x.Outcome))
	}
	natural(c, &x.GasUsed, "gas")
	natural(c, &x.Imports, "imports")
	natural(c, &x.ExtrinsicCount, "extrinsic count")
	natural(c, &x.ExtrinsicSize, "extrinsic size")
	natural(c, &x.Exports, "exports")
}

func (x *Guarantee) code(c *coder) {
	x.Report.code(c)
	x.codeCredential(c)
}

func (x *Guarantee) codeCredential(c *coder) {
	u32(c, &x.Slot)
	sequence(c, &x.Signatures, signatureSize, func(c *coder, s *ValidatorSignature) {
		u16(c, &s.Validator)
		c.bytes(s.Signature[:])
	})
}
