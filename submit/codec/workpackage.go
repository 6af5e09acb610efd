package codec

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// RefineContext is a jamq.RefineContext that Encode and Decode accept by itself,
// outside of a package or report. The two types can be converted into each other.
type RefineContext jamq.RefineContext

// WorkPackage is a work package (GP 14.2).
type WorkPackage struct {
	// AuthCodeHost is the service that holds the code of the authorizer, and AuthCodeHash is the
	// hash of that code.
	AuthCodeHost jamq.ServiceID
	AuthCodeHash common.Hash
	// Context is the refine context.
	Context jamq.RefineContext
	// Authorization is the token that the authorizer checks, for example a signature.
	// AuthorizerConfig is the configuration of the authorizer.
	Authorization, AuthorizerConfig []byte
	// Items are the work items.
	Items []WorkItem
}

// WorkItem is a work item (GP 14.3).
type WorkItem struct {
	// Service is the service that refines the item, and CodeHash is the hash of the
	// code that it uses.
	Service  jamq.ServiceID
	CodeHash common.Hash
	// RefineGas and AccumulateGas are the gas limits for refining the item and for accumulating its
	// result.
	RefineGas, AccumulateGas uint64
	// ExportCount is the number of segments that the item exports.
	ExportCount uint16
	// Payload is the input of the service.
	Payload []byte
	// Imports are the segments that the item imports. Extrinsics identify the data that is sent
	// along with the package for this item.
	Imports    []Import
	Extrinsics []Extrinsic
}

// Import identifies one segment that a work item imports from another package.
type Import struct {
	// Root is the root over the exported segments or, if ByPackage is true, the hash of the package
	// that exports them.
	Root      common.Hash
	ByPackage bool
	// Index is the position of the segment among the exported segments, below 2^15.
	Index uint16
}

// Extrinsic identifies data that is sent along with a package. The package itself
// contains only the hash and the length of the data.
type Extrinsic struct {
	// Hash is the BLAKE2b-256 hash of the data, and Length is the length of the data in bytes.
	Hash   common.Hash
	Length uint32
}

// Sizes of the shortest encoded elements, in bytes.
const (
	hashSize      = 32
	leastItem     = 4 + 32 + 8 + 8 + 2 + 3
	importSize    = 32 + 2
	extrinsicSize = 32 + 4
)

// byPackageBit is set in the encoded index of an import if the import names the exporting package
// instead of a segment root.
const byPackageBit = 1 << 15

func (x *RefineContext) code(c *coder) { context(c, (*jamq.RefineContext)(x)) }

// context encodes or decodes a refine context (GP C.24).
func context(c *coder, x *jamq.RefineContext) {
	hash(c, &x.Anchor)
	if c.codec.version >= V080 {
		u32(c, &x.AnchorSlot)
	}
	hash(c, &x.StateRoot)
	hash(c, &x.BeefyRoot)
	hash(c, &x.LookupAnchor)
	u32(c, &x.LookupAnchorSlot)
	if c.codec.version >= V080 {
		hash(c, &x.LookupStateRoot)
	}
	sequence(c, &x.Prerequisites, hashSize, hash[jamq.PackageHash])
	ascending(c, x.Prerequisites, "prerequisite", func(a, b *jamq.PackageHash) int { return a.Compare(*b) })
}

func (x *WorkPackage) code(c *coder) { // GP C.28
	u32(c, &x.AuthCodeHost)
	hash(c, &x.AuthCodeHash)
	context(c, &x.Context)
	c.blob(&x.Authorization)
	c.blob(&x.AuthorizerConfig)
	sequence(c, &x.Items, leastItem, func(c *coder, i *WorkItem) { i.code(c) })
}

func (x *WorkItem) code(c *coder) { // GP C.29
	u32(c, &x.Service)
	hash(c, &x.CodeHash)
	u64(c, &x.RefineGas)
	u64(c, &x.AccumulateGas)
	u16(c, &x.ExportCount)
	c.blob(&x.Payload)
	sequence(c, &x.Imports, importSize, func(c *coder, i *Import) { i.code(c) })
	sequence(c, &x.Extrinsics, extrinsicSize, func(c *coder, e *Extrinsic) {
		hash(c, &e.Hash)
		u32(c, &e.Length)
	})
}

func (x *Import) code(c *coder) {
	hash(c, &x.Root)
	if !c.reads && x.Index >= byPackageBit {
		c.fail(fmt.Errorf("%w: import index %d, want below %d", ErrTooLarge, x.Index, byPackageBit))
	}
	index := x.Index
	if x.ByPackage {
		index |= byPackageBit
	}
	u16(c, &index)
	if c.reads {
		x.ByPackage, x.Index = index&byPackageBit != 0, index&^byPackageBit
	}
}
