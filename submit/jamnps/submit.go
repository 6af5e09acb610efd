package jamnps

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
)

// Limits of what guarantors take, in bytes (JAMNP-S).
const (
	maxPackage     = 200 << 10
	segmentSize    = 4104
	maxBundleParts = 16 << 20 // more than the chain's greatest bundle
)

// Submission is a package on its way.
type Submission struct {
	// Core is whose guarantors get it, Attempt counts from 1 and chooses one of them.
	Core    jamq.CoreIndex
	Attempt int
	// Package is the encoded package, Extrinsics are the data beside it, in order.
	Package    []byte
	Extrinsics [][]byte
}

// Bundle is a package with all that its refinement needs.
type Bundle struct {
	Submission
	// Roots say which segments root the packages have whose segments are imported by package hash.
	Roots []codec.SegmentLookup
	// Segments are the imported segments, 4,104 bytes each, in order, and Proofs the hashes that prove each of them.
	Segments [][]byte
	Proofs   [][][32]byte
}

// SubmitPackage gives a package to a guarantor (CE 133). Nil says that it has it. The error has a class: see submit.ClassOf.
func (c *Client) SubmitPackage(ctx context.Context, s Submission) error {
	if len(s.Package) > maxPackage {
		return submit.WithClass(submit.Rebuild, fmt.Errorf("%w: package of %d bytes, want at most %d", ErrTooLarge, len(s.Package), maxPackage))
	}
	extrinsics, err := join(s.Extrinsics)
	if err != nil {
		return submit.WithClass(submit.Rebuild, err)
	}
	first := binary.LittleEndian.AppendUint16(nil, uint16(s.Core))
	messages := [][]byte{append(first, s.Package...), extrinsics}
	return classify(c.request(ctx, c.choose(s.Core, s.Attempt), WorkPackageSubmission, messages, nil))
}

// SubmitBundle gives a bundle to a guarantor (CE 146), which then need not look for imported segments. Errors are those of SubmitPackage, and
// ErrMalformed for a segment of the wrong size or without a proof.
func (c *Client) SubmitBundle(ctx context.Context, b *Bundle) error {
	messages, err := b.messages()
	if err != nil {
		return submit.WithClass(submit.Rebuild, err)
	}
	return classify(c.request(ctx, c.choose(b.Core, b.Attempt), BundleSubmission, messages, nil))
}

// messages returns the five messages of a bundle.
func (b *Bundle) messages() ([][]byte, error) {
	if len(b.Package) > maxPackage {
		return nil, fmt.Errorf("%w: package of %d bytes, want at most %d", ErrTooLarge, len(b.Package), maxPackage)
	}
	if len(b.Segments) != len(b.Proofs) {
		return nil, fmt.Errorf("%w: %d segments and %d proofs, want as many", ErrMalformed, len(b.Segments), len(b.Proofs))
	}
	head := binary.LittleEndian.AppendUint16(nil, uint16(b.Core))
	head = codec.AppendNatural(head, uint64(len(b.Roots)))
	for _, r := range b.Roots {
		head = append(append(head, r.Package[:]...), r.SegmentRoot[:]...)
	}
	extrinsics, err := join(b.Extrinsics)
	if err != nil {
		return nil, err
	}
	for i, s := range b.Segments {
		if len(s) != segmentSize {
			return nil, fmt.Errorf("%w: segment %d has %d bytes, want %d", ErrMalformed, i, len(s), segmentSize)
		}
	}
	segments, err := join(b.Segments)
	if err != nil {
		return nil, err
	}
	var proofs []byte
	for _, proof := range b.Proofs {
		proofs = codec.AppendNatural(proofs, uint64(len(proof)))
		for _, h := range proof {
			proofs = append(proofs, h[:]...)
		}
	}
	return [][]byte{head, b.Package, extrinsics, segments, proofs}, nil
}

func join(parts [][]byte) ([]byte, error) {
	var out []byte
	for _, p := range parts {
		if len(out)+len(p) > maxBundleParts {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxBundleParts)
		}
		out = append(out, p...)
	}
	return out, nil
}

// classify says what a failed submission calls for. All but what is wrong with the client itself asks for another guarantor: also where it is the
// connection that failed, since that is to one of them.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrClosed):
		return submit.WithClass(submit.Fatal, err)
	}
	return submit.WithClass(submit.OtherGuarantor, err)
}
