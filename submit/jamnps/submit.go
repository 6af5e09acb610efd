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

// Submission is a package to send.
type Submission struct {
	// Core is the core whose guarantors receive the package. Attempt counts
	// from 1 and selects one of them.
	Core    jamq.CoreIndex
	Attempt int
	// Package is the encoded package, at most 200 KiB, and Extrinsics the data
	// that accompanies it, in order.
	Package    []byte
	Extrinsics [][]byte
}

// Bundle is a package with all data that its refinement needs.
type Bundle struct {
	Submission
	// Roots maps packages to segment roots, for segments that are imported by
	// package hash.
	Roots []codec.SegmentLookup
	// Segments are the imported segments, in order, 4,104 bytes each. Proofs
	// has the hashes that prove each of them.
	Segments [][]byte
	Proofs   [][][32]byte
}

// SubmitPackage sends a package to a guarantor (CE 133). A nil error means that
// the guarantor has received it. Errors have a class: see submit.ClassOf. The
// error wraps ErrTooLarge if the package or its extrinsics exceed the limits.
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

// SubmitBundle sends a bundle to a guarantor (CE 146), which then does not have
// to fetch imported segments. Errors are those of SubmitPackage. The error also
// wraps ErrMalformed if a segment has the wrong size or lacks a proof.
func (c *Client) SubmitBundle(ctx context.Context, b *Bundle) error {
	messages, err := b.messages()
	if err != nil {
		return submit.WithClass(submit.Rebuild, err)
	}
	return classify(c.request(ctx, c.choose(b.Core, b.Attempt), bundleSubmission, messages, nil))
}

// messages returns the five messages of a bundle.
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

// classify adds the class to the error of a submission. Except after Close,
// another guarantor may accept the package, even if the connection failed,
// because the connection leads to one guarantor only.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrClosed):
		return submit.WithClass(submit.Fatal, err)
	}
	return submit.WithClass(submit.OtherGuarantor, err)
}
