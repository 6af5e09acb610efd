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

// Limits for the messages to guarantors, in bytes (JAMNP-S).
const (
	maxPackage     = 200 << 10
	segmentSize    = 4104
	maxBundleParts = 16 << 20 // exceeds the largest bundle
)

// Submission is a package that the client sends to a guarantor.
type Submission struct {
	// Core is the core whose guarantors may receive the package. Attempt is the number of
	// the attempt, counted from 1. It selects the guarantor, so that each attempt goes to a
	// different one.
	Core    jamq.CoreIndex
	Attempt int
	// Package is the encoded package, at most 200 KiB. Extrinsics contains the data to
	// which the package refers by hash, in the same order.
	Package    []byte
	Extrinsics [][]byte
}

// Bundle is a package together with all data that its refinement needs, so that the
// guarantor need not fetch this data.
type Bundle struct {
	Submission
	// Roots maps packages to the roots of the segments that they have exported. It is
	// needed for segments that are imported by the hash of a package instead of by their
	// root.
	Roots []codec.SegmentLookup
	// Segments are the imported segments in order, 4,104 bytes each. For each segment,
	// Proofs contains the hashes that prove that the segment belongs to its root.
	Segments [][]byte
	Proofs   [][][32]byte
}

// SubmitPackage sends a package to one guarantor (CE 133). A nil error means that the
// guarantor has received the package, but not that it will report the package. The
// error wraps ErrTooLarge if the package or its extrinsics exceed the limits. The class
// of an error (see submit.ClassOf) tells the caller how to continue.
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
	return classify(c.request(ctx, c.choose(s.Core, s.Attempt), workPackageSubmission, messages, nil))
}

// SubmitBundle sends a bundle to one guarantor (CE 146), which then need not fetch the
// imported segments. The error wraps ErrMalformed if a segment has the wrong size or
// lacks a proof; other errors are those of SubmitPackage.
func (c *Client) SubmitBundle(ctx context.Context, b *Bundle) error {
	messages, err := b.messages()
	if err != nil {
		return submit.WithClass(submit.Rebuild, err)
	}
	return classify(c.request(ctx, c.choose(b.Core, b.Attempt), bundleSubmission, messages, nil))
}

// messages returns the five messages in which a bundle is sent.
func (b *Bundle) messages() ([][]byte, error) {
	if len(b.Package) > maxPackage {
		return nil, fmt.Errorf("%w: package of %d bytes, want at most %d", ErrTooLarge, len(b.Package), maxPackage)
	}
	if len(b.Segments) != len(b.Proofs) {
		return nil, fmt.Errorf("%w: %d segments and %d proofs, want equal numbers", ErrMalformed, len(b.Segments), len(b.Proofs))
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

// classify adds the class that submit.ClassOf returns to the error of a submission.
// Except after Close, the class is OtherGuarantor. This is right even for a failed
// connection, because it leads to only one guarantor, and another guarantor may accept
// the package.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrClosed):
		return submit.WithClass(submit.Fatal, err)
	}
	return submit.WithClass(submit.OtherGuarantor, err)
}
