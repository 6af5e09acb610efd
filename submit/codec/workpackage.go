package codec

import (
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// WorkPackage is a work package (GP 14.2).
type WorkPackage struct {
	// AuthCodeHost is the service that holds the authorizer's code, AuthCodeHash the code's hash.
	AuthCodeHost jamq.ServiceID
	AuthCodeHash common.Hash
	// Context is the refine context.
	Context jamq.RefineContext
	// Authorization is the token, AuthorizerConfig the authorizer's configuration.
	Authorization, AuthorizerConfig []byte
	// Items are the work items.
	Items []WorkItem
}

// WorkItem is a work item (GP 14.3).
type WorkItem struct {
	// Service is the service that refines it, CodeHash the service's code.
	Service  jamq.ServiceID
	CodeHash common.Hash
	// RefineGas and AccumulateGas are limits, in gas.
	RefineGas, AccumulateGas uint64
	// ExportCount is how many segments it exports.
	ExportCount uint16
	// Payload is the service's input.
	Payload []byte
	// Imports are the segments that it imports, Extrinsics the data that comes beside the package.
	Imports    []Import
	Extrinsics []Extrinsic
}

// Import names a segment.
type Import struct {
	// Root is a segment root, or the hash of the exporting package if ByPackage.
	Root      common.Hash
	ByPackage bool
	// Index is the segment's, below 2^15.
	Index uint16
}

// Extrinsic names data that comes beside the package.
type Extrinsic struct {
	// Hash is the BLAKE2b-256 hash of the data, Length its length in bytes.
	Hash   common.Hash
	Length uint32
}

// Sizes of the shortest elements of sequences, in bytes.
const (
	minItem       = 4 + 32 + 8 + 8 + 2 + 3
	importSize    = 32 + 2
	extrinsicSize = 32 + 4
	byPackageBit  = 1 << 15
)

// AppendRefineContext appends the encoding of a refine context (GP C.24). The error wraps ErrNonCanonical where the prerequisites are not
// ascending and distinct.
func AppendRefineContext(b []byte, c *jamq.RefineContext) ([]byte, error) {
	if err := checkAscending(c.Prerequisites); err != nil {
		return nil, err
	}
	b = append(b, c.Anchor[:]...)
	b = append(b, c.StateRoot[:]...)
	b = append(b, c.BeefyRoot[:]...)
	b = append(b, c.LookupAnchor[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(c.LookupAnchorSlot))
	b = AppendNatural(b, uint64(len(c.Prerequisites)))
	for _, p := range c.Prerequisites {
		b = append(b, p[:]...)
	}
	return b, nil
}

func checkAscending(hashes []jamq.PackageHash) error {
	for i := 1; i < len(hashes); i++ {
		if hashes[i-1].Compare(hashes[i]) >= 0 {
			return fmt.Errorf("%w: prerequisites %s and %s are not ascending", ErrNonCanonical, hashes[i-1], hashes[i])
		}
	}
	return nil
}

// DecodeRefineContext is the inverse of AppendRefineContext. Errors wrap ErrTruncated or ErrNonCanonical.
func DecodeRefineContext(raw []byte) (jamq.RefineContext, error) {
	r := &reader{rest: raw}
	c := r.refineContext()
	return c, r.end()
}

func (r *reader) refineContext() (c jamq.RefineContext) {
	r.fixed(c.Anchor[:])
	r.fixed(c.StateRoot[:])
	r.fixed(c.BeefyRoot[:])
	r.fixed(c.LookupAnchor[:])
	c.LookupAnchorSlot = jamq.Slot(r.uint32())
	for range r.count(len(jamq.PackageHash{})) {
		var p jamq.PackageHash
		r.fixed(p[:])
		c.Prerequisites = append(c.Prerequisites, p)
	}
	if err := checkAscending(c.Prerequisites); err != nil {
		r.fail(err)
	}
	return c
}

// Encode returns the encoding of an item (GP C.29). The error wraps ErrTooLarge where an import index needs more than 15 bits.
func (w *WorkItem) Encode() ([]byte, error) { return w.append(nil) }

func (w *WorkItem) append(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint32(b, uint32(w.Service))
	b = append(b, w.CodeHash[:]...)
	b = binary.LittleEndian.AppendUint64(b, w.RefineGas)
	b = binary.LittleEndian.AppendUint64(b, w.AccumulateGas)
	b = binary.LittleEndian.AppendUint16(b, w.ExportCount)
	b = appendBlob(b, w.Payload)
	b = AppendNatural(b, uint64(len(w.Imports)))
	for _, i := range w.Imports {
		index := i.Index
		if index >= byPackageBit {
			return nil, fmt.Errorf("%w: import index %d, want below %d", ErrTooLarge, index, byPackageBit)
		}
		if i.ByPackage {
			index |= byPackageBit
		}
		b = append(b, i.Root[:]...)
		b = binary.LittleEndian.AppendUint16(b, index)
	}
	b = AppendNatural(b, uint64(len(w.Extrinsics)))
	for _, x := range w.Extrinsics {
		b = append(b, x.Hash[:]...)
		b = binary.LittleEndian.AppendUint32(b, x.Length)
	}
	return b, nil
}

// DecodeWorkItem is the inverse of Encode. Errors wrap ErrTruncated or ErrNonCanonical.
func DecodeWorkItem(raw []byte) (WorkItem, error) {
	r := &reader{rest: raw}
	w := r.workItem()
	return w, r.end()
}

func (r *reader) workItem() (w WorkItem) {
	w.Service = jamq.ServiceID(r.uint32())
	r.fixed(w.CodeHash[:])
	w.RefineGas, w.AccumulateGas = r.uint64(), r.uint64()
	w.ExportCount = r.uint16()
	w.Payload = r.blob()
	for range r.count(importSize) {
		var i Import
		r.fixed(i.Root[:])
		index := r.uint16()
		i.ByPackage, i.Index = index&byPackageBit != 0, index&^byPackageBit
		w.Imports = append(w.Imports, i)
	}
	for range r.count(extrinsicSize) {
		var x Extrinsic
		r.fixed(x.Hash[:])
		x.Length = r.uint32()
		w.Extrinsics = append(w.Extrinsics, x)
	}
	return w
}

// Encode returns the encoding of a package (GP C.28). Errors are those of its parts.
func (p *WorkPackage) Encode() ([]byte, error) {
	b := binary.LittleEndian.AppendUint32(nil, uint32(p.AuthCodeHost))
	b = append(b, p.AuthCodeHash[:]...)
	b, err := AppendRefineContext(b, &p.Context)
	if err != nil {
		return nil, err
	}
	b = appendBlob(b, p.Authorization)
	b = appendBlob(b, p.AuthorizerConfig)
	b = AppendNatural(b, uint64(len(p.Items)))
	for i := range p.Items {
		if b, err = p.Items[i].append(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// DecodeWorkPackage is the inverse of Encode. Errors wrap ErrTruncated or ErrNonCanonical.
func DecodeWorkPackage(raw []byte) (WorkPackage, error) {
	r := &reader{rest: raw}
	var p WorkPackage
	p.AuthCodeHost = jamq.ServiceID(r.uint32())
	r.fixed(p.AuthCodeHash[:])
	p.Context = r.refineContext()
	p.Authorization, p.AuthorizerConfig = r.blob(), r.blob()
	for range r.count(minItem) {
		p.Items = append(p.Items, r.workItem())
	}
	return p, r.end()
}

// Hash returns the package's hash: BLAKE2b-256 of its encoding. Errors are those of Encode.
func (p *WorkPackage) Hash() (jamq.PackageHash, error) {
	raw, err := p.Encode()
	if err != nil {
		return jamq.PackageHash{}, err
	}
	return blake2b.Sum256(raw), nil
}
