package jip2

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"

	"github.com/jamq/jamq"
)

// AccumulationOutputs returns the hashes that services yielded in a block, as the
// state chapter C(16) encodes them. DecodeOutputs of package canonical/proof
// decodes them. The error is an *[Error] with CodeProofUnavailable if the node no
// longer has them.
func (c *Client) AccumulationOutputs(ctx context.Context, block jamq.HeaderHash) ([]byte, error) {
	return required[[]byte](ctx, c, "accumulationOutputs", Hash(block))
}

// AccumulationOutputProof returns the proof that a service yielded a hash in a
// block. If the service yielded several hashes there, the proof is about the
// first. The error is an *[Error] with CodeLeafNotFound if the service yielded
// none, or CodeProofUnavailable.
func (c *Client) AccumulationOutputProof(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID) (AccumulationOutputProof, error) {
	return required[AccumulationOutputProof](ctx, c, "accumulationOutputProof", Hash(block), service)
}

// BeefyMMRProof returns the proof that the accumulation-output log after a block
// contains a leaf, by its index. The leaf may be that of an earlier block. The
// error is an *[Error] with CodeLeafNotFound if the log is shorter, or
// CodeProofUnavailable.
func (c *Client) BeefyMMRProof(ctx context.Context, block jamq.HeaderHash, leaf uint64) (BeefyMMRProof, error) {
	return required[BeefyMMRProof](ctx, c, "beefyMmrProof", Hash(block), leaf)
}

// BeefyCommitments returns the signatures of validators over the BEEFY root of a
// final block, as far as the node has them. The error is an *[Error] with
// CodeNotFinal, or CodeCommitmentsUnavailable if the node has none.
func (c *Client) BeefyCommitments(ctx context.Context, block jamq.HeaderHash) (BeefyCommitments, error) {
	return required[BeefyCommitments](ctx, c, "beefyCommitments", Hash(block))
}

// AccumulationOutputProof proves that a service yielded a hash in a block. Package
// canonical/proof/jip2proof makes a part of a finality proof of it.
type AccumulationOutputProof struct {
	// YieldHash is the hash.
	YieldHash Hash `json:"yield_hash"`
	// BlockOutputRoot is the root of all hashes that the block's services yielded.
	// It is the leaf of the block in the accumulation-output log.
	BlockOutputRoot Hash `json:"block_output_root"`
	// BeefyRoot is the super-peak of that log after the block.
	BeefyRoot Hash `json:"beefy_root"`
	// LeafIndex is the position of BlockOutputRoot in the log, from 0.
	LeafIndex uint64 `json:"leaf_index"`
	// Inner leads from YieldHash to BlockOutputRoot, and Outer from there to
	// BeefyRoot.
	Inner WBProof  `json:"inner"`
	Outer MMRProof `json:"outer"`
}

// UnmarshalJSON decodes a proof. The error wraps ErrMalformed if a field is
// missing or malformed.
func (p *AccumulationOutputProof) UnmarshalJSON(raw []byte) error {
	type plain AccumulationOutputProof
	return decodeFields("accumulation output proof", raw, (*plain)(p), "yield_hash", "block_output_root", "beefy_root", "leaf_index", "inner", "outer")
}

// BeefyMMRProof proves that the accumulation-output log contains a leaf.
type BeefyMMRProof struct {
	// Leaf is the root of the hashes that services yielded in a block, as in
	// AccumulationOutputProof.BlockOutputRoot.
	Leaf Hash `json:"leaf"`
	// BeefyRoot is the super-peak of the log. Proof leads from Leaf to it.
	BeefyRoot Hash     `json:"beefy_root"`
	Proof     MMRProof `json:"proof"`
}

// UnmarshalJSON decodes a proof. The error wraps ErrMalformed if a field is
// missing or malformed.
func (p *BeefyMMRProof) UnmarshalJSON(raw []byte) error {
	type plain BeefyMMRProof
	return decodeFields("BEEFY MMR proof", raw, (*plain)(p), "leaf", "beefy_root", "proof")
}

// WBProof is a path in a well-balanced Merkle tree (GP E.1).
type WBProof struct {
	// LeafIndex is the position of the leaf, from 0 to LeafCount-1.
	LeafIndex uint32 `json:"leaf_index"`
	LeafCount uint32 `json:"leaf_count"`
	// Path has the siblings from the leaf to the root. A sibling is a hash of 32
	// bytes or, if it is a single leaf, that leaf of 36 bytes, because the tree does
	// not hash its leaves (GP E.1.1). JIP-2 calls every sibling a hash.
	Path [][]byte `json:"path"`
}

// outputSize is the size of a leaf of the tree over a block's outputs, in bytes:
// the service and the hash.
const outputSize = 4 + len(Hash{})

// UnmarshalJSON decodes a path. The error wraps ErrMalformed if a field is
// missing or malformed, if there is no such leaf, or if the path is longer than
// the tree is high.
func (p *WBProof) UnmarshalJSON(raw []byte) error {
	const name = "path in an output tree"
	var f struct {
		LeafIndex uint32    `json:"leaf_index"`
		LeafCount uint32    `json:"leaf_count"`
		Path      []*string `json:"path"`
	}
	if err := decodeFields(name, raw, &f, "leaf_index", "leaf_count", "path"); err != nil {
		return err
	}
	if f.LeafIndex >= f.LeafCount || len(f.Path) > bits.Len32(f.LeafCount-1) {
		return fmt.Errorf("%w: %s of %d siblings for leaf %d of %d", ErrMalformed, name, len(f.Path), f.LeafIndex, f.LeafCount)
	}
	path := make([][]byte, len(f.Path))
	for i := range f.Path {
		var err error
		if path[i], err = decodeBlob(f.Path[i], len(Hash{}), outputSize); err != nil {
			return malformed(name, err)
		}
	}
	*p = WBProof{LeafIndex: f.LeafIndex, LeafCount: f.LeafCount, Path: path}
	return nil
}

// MMRProof is a path in the accumulation-output log, a Merkle mountain range (GP
// E.2).
type MMRProof struct {
	// LeafIndex is the position of the leaf, from 0, in the order in which blocks
	// appended leaves.
	LeafIndex uint64 `json:"leaf_index"`
	// Peaks has all peaks of the log: at i the root of a tree of 2^i leaves, or nil.
	Peaks []*Hash `json:"peaks"`
	// MountainPath has the siblings from the leaf to the peak of its tree.
	MountainPath []Hash `json:"mountain_path"`
}

// maxHeight is the maximum number of peaks of a log, whose leaves a uint64 counts.
const maxHeight = 64

// UnmarshalJSON decodes a path. The error wraps ErrMalformed if a field is
// missing or malformed.
func (p *MMRProof) UnmarshalJSON(raw []byte) error {
	const name = "path in the output log"
	var f struct {
		LeafIndex    uint64  `json:"leaf_index"`
		Peaks        []*Hash `json:"peaks"`
		MountainPath []*Hash `json:"mountain_path"`
	}
	if err := decodeFields(name, raw, &f, "leaf_index", "peaks", "mountain_path"); err != nil {
		return err
	}
	if len(f.Peaks) > maxHeight || len(f.MountainPath) >= max(1, len(f.Peaks)) || slices.Contains(f.MountainPath, nil) {
		return fmt.Errorf("%w: %s of %d siblings and %d peaks, or with null", ErrMalformed, name, len(f.MountainPath), len(f.Peaks))
	}
	path := make([]Hash, len(f.MountainPath))
	for i, h := range f.MountainPath {
		path[i] = *h
	}
	*p = MMRProof{LeafIndex: f.LeafIndex, Peaks: f.Peaks, MountainPath: path}
	return nil
}

// BeefyCommitments are signatures of validators over BeefyRoot, the BEEFY root of a
// final block.
type BeefyCommitments struct {
	BeefyRoot Hash `json:"beefy_root"`
	// Commitments should be ascending by validator, without duplicates. The client
	// does not check that.
	Commitments []BeefyCommitment `json:"commitments"`
}

// maxCommitments is the maximum size of the JSON of commitments, in bytes. Those of
// 1,023 validators take about 110 KiB.
const maxCommitments = 1 << 20

// UnmarshalJSON decodes commitments of at most 1 MiB. The error wraps ErrMalformed
// if a field is missing or malformed.
func (s *BeefyCommitments) UnmarshalJSON(raw []byte) error {
	const name = "BEEFY commitments"
	if len(raw) > maxCommitments {
		return fmt.Errorf("%w: %s of %d bytes, want at most %d", ErrMalformed, name, len(raw), maxCommitments)
	}
	var f struct {
		BeefyRoot   *Hash             `json:"beefy_root"`
		Commitments []BeefyCommitment `json:"commitments"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return malformed(name, err)
	}
	if f.BeefyRoot == nil || f.Commitments == nil {
		return fmt.Errorf("%w: %s without beefy_root or commitments", ErrMalformed, name)
	}
	*s = BeefyCommitments{BeefyRoot: *f.BeefyRoot, Commitments: f.Commitments}
	return nil
}

// BeefyCommitment is the signature of one validator.
type BeefyCommitment struct {
	// ValidatorIndex is the index in the validator set after the block. Signature
	// has 48 bytes (BLS12-381, a compressed point of G1).
	ValidatorIndex uint16 `json:"validator_index"`
	Signature      []byte `json:"signature"`
}

// signatureSize is the size of a signature, in bytes.
const signatureSize = 48

// UnmarshalJSON decodes a signature. The error wraps ErrMalformed if a field is
// missing or malformed.
func (s *BeefyCommitment) UnmarshalJSON(raw []byte) error {
	const name = "BEEFY commitment"
	var f struct {
		ValidatorIndex uint16  `json:"validator_index"`
		Signature      *string `json:"signature"`
	}
	if err := decodeFields(name, raw, &f, "validator_index", "signature"); err != nil {
		return err
	}
	signature, err := decodeBlob(f.Signature, signatureSize)
	if err != nil {
		return malformed(name, err)
	}
	*s = BeefyCommitment{ValidatorIndex: f.ValidatorIndex, Signature: signature}
	return nil
}

// decodeFields decodes an object of at most maxShape bytes. The error wraps
// ErrMalformed if a required field is missing or null, or if a field is malformed.
func decodeFields(name string, raw []byte, into any, required ...string) error {
	if err := checkSize(name, raw); err != nil {
		return err
	}
	if err := checkFields(raw, required); err != nil {
		return malformed(name, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return malformed(name, err)
	}
	return nil
}

// decodeBlob decodes padded base64 of one of some sizes.
func decodeBlob(text *string, sizes ...int) ([]byte, error) {
	if text == nil {
		return nil, fmt.Errorf("null, want base64")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(*text)
	if err != nil || !slices.Contains(sizes, len(raw)) {
		return nil, fmt.Errorf("%.100q, want base64 of %d bytes", *text, sizes)
	}
	return raw, nil
}
