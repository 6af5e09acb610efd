package codec

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// WorkReport is the result of refining a package. Guarantors sign it and put it on
// the chain (GP 11.2).
type WorkReport struct {
	// Package describes the refined bundle.
	Package PackageSpec
	// Context is the package's refine context.
	Context jamq.RefineContext
	// Core is the core of the report.
	Core jamq.CoreIndex
	// Authorizer is the hash of the package's authorizer, and AuthGasUsed is the gas that the
	// authorizer has used.
	Authorizer  common.Hash
	AuthGasUsed uint64
	// Trace is the output of the authorizer.
	Trace []byte
	// Lookups contains the segment roots of the packages from which the report's
	// package imports segments, in ascending order of the packages.
	Lookups []SegmentLookup
	// Digests are the results of the work items, in order.
	Digests []workDigest
}

// PackageSpec identifies a bundle and describes how its data is made available (GP 11.5).
type PackageSpec struct {
	// Hash is the hash of the package, and Length is the length of the encoded bundle in bytes.
	Hash   jamq.PackageHash
	Length uint32
	// ErasureRoot is the root over the erasure-coded chunks of the bundle. ErasureShards is the
	// number of chunks, one for each validator; the encoding contains it only from Gray Paper 0.8.0
	// on.
	ErasureRoot   common.Hash
	ErasureShards uint16
	// SegmentRoot is the root over the exported segments, and SegmentCount is their number.
	SegmentRoot  common.Hash
	SegmentCount uint16
}

// SegmentLookup maps a package to the root of the segments that it exports.
type SegmentLookup struct {
	// Package is the package that exports the segments with root SegmentRoot.
	Package     jamq.PackageHash
	SegmentRoot common.Hash
}

// workDigest is the result of one work item (GP 11.6).
type workDigest struct {
	// Service is the service that refined the item, CodeHash is the hash of its code, and
	// PayloadHash is the hash of the item's payload.
	Service     jamq.ServiceID
	CodeHash    common.Hash
	PayloadHash common.Hash
	// AccumulateGas is the gas limit of the accumulation.
	AccumulateGas uint64
	// Outcome tells how the refinement ended. Output is the result of the
	// refinement; it must be empty unless Outcome is done.
	Outcome outcome
	Output  []byte
	// The following fields measure the work of the refinement: GasUsed is the gas,
	// Imports the number of imported segments, ExtrinsicCount the number of
	// extrinsics, ExtrinsicSize their total size in bytes, and Exports the number
	// of exported segments.
	GasUsed        uint64
	Imports        uint16
	ExtrinsicCount uint16
	ExtrinsicSize  uint32
	Exports        uint16
}

// outcome tells how the refinement of a work item ended (GP C.34).
type outcome uint8

// The numbers are those of the encoding.
const (
	// done means that the refinement returned an output.
	done outcome = iota
	// outOfGas means that the refinement used up its gas.
	outOfGas
	// panicked means that the code panicked.
	panicked
	// badExports means that the number of exported segments differs from the item's
	// ExportCount.
	badExports
	// oversize means that the outputs of all items together are too large for a
	// report.
	oversize
	// badCode means that the code of the service is not available.
	badCode
	// bigCode means that the code of the service is too large.
	bigCode
)

// Guarantee is a report with the signatures of its guarantors (GP 11.23).
type Guarantee struct {
	// Report is the guaranteed report.
	Report WorkReport
	// Slot is the slot in which the guarantors signed.
	Slot jamq.Slot
	// Signatures are the signatures of two or three guarantors, in ascending
	// order of their indices.
	Signatures []validatorSignature
}

// validatorSignature is the Ed25519 signature of a validator.
type validatorSignature struct {
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
	sequence(c, &x.Digests, leastDigest, func(c *coder, d *workDigest) { d.code(c) })
}

func (x *PackageSpec) code(c *coder) { // GP C.25
	hash(c, &x.Hash)
	u32(c, &x.Length)
	hash(c, &x.ErasureRoot)
	if c.codec.version >= V080 {
		u16(c, &x.ErasureShards)
	}
	hash(c, &x.SegmentRoot)
	u16(c, &x.SegmentCount)
}

func (x *workDigest) code(c *coder) { // GP C.26
	u32(c, &x.Service)
	hash(c, &x.CodeHash)
	hash(c, &x.PayloadHash)
	u64(c, &x.AccumulateGas)
	u8(c, &x.Outcome)
	switch {
	case x.Outcome == done:
		c.blob(&x.Output)
	case x.Outcome > bigCode:
		c.fail(fmt.Errorf("%w: outcome %d, want at most %d", ErrNonCanonical, uint8(x.Outcome), uint8(bigCode)))
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
	sequence(c, &x.Signatures, signatureSize, func(c *coder, s *validatorSignature) {
		u16(c, &s.Validator)
		c.bytes(s.Signature[:])
	})
}
