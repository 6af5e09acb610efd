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

// AccumulationOutputs returns the hashes that services yielded in a block. They
// are encoded like the part of the state that the Gray Paper calls C(16), which
// DecodeOutputs of package canonical/proof decodes. If the node no longer has
// the hashes, the error is an *[Error] with CodeProofUnavailable.
func (c *Client) AccumulationOutputs(ctx context.Context, block jamq.HeaderHash) ([]byte, error) {
	return required[[]byte](ctx, c, "accumulationOutputs", Hash(block))
}

// AccumulationOutputProof returns a proof that a service yielded a hash in a
// block. If the service yielded several hashes in this block, the proof is
// about the first. The error is an *[Error] with one of these codes:
//
//   - CodeLeafNotFound: the service yielded no hash.
//   - CodeProofUnavailable: the node cannot make the proof.
func (c *Client) AccumulationOutputProof(ctx context.Context, block jamq.HeaderHash, service jamq.ServiceID) (AccumulationOutputProof, error) {
	return required[AccumulationOutputProof](ctx, c, "accumulationOutputProof", Hash(block), service)
}

// BeefyMMRProof returns a proof that the accumulation-output log, as it is
// after a block, contains the leaf with the given index. The leaf may belong to
// an earlier block. The error is an *[Error] with one of these codes:
//
//   - CodeLeafNotFound: the log is shorter.
//   - CodeProofUnavailable: the node cannot make the proof.
func (c *Client) BeefyMMRProof(ctx context.Context, block jamq.HeaderHash, leaf uint64) (BeefyMMRProof, error) {
	return required[BeefyMMRProof](ctx, c, "beefyMmrProof", Hash(block), leaf)
}

// BeefyCommitments returns the signatures of validators over the BEEFY root of
// a final block. It returns all that the node has. The error is an *[Error]
// with one of these codes:
//
//   - CodeNotFinal: the block is not final.
//   - CodeCommitmentsUnavailable: the node has no signatures.
func (c *Client) BeefyCommitments(ctx context.Context, block jamq.HeaderHash) (BeefyCommitments, error) {
	return required[BeefyCommitments](ctx, c, "beefyCommitments", Hash(block))
}

// AccumulationOutputProof proves that a service yielded a hash in a block.
// Package canonical/proof/jip2proof converts it to a part of a rollup's
// finality proof.
type AccumulationOutputProof struct {
	// YieldHash is the hash that the service yielded.
	YieldHash Hash `json:"yield_hash"`
	// BlockOutputRoot is the Merkle root over all hashes that services yielded
	// in the block. The accumulation-output log has one leaf for each block,
	// and this root is the leaf for the block.
	BlockOutputRoot Hash `json:"block_output_root"`
	// BeefyRoot is the super-peak of the accumulation-output log after the block: one hash over the
	// whole log.
	BeefyRoot Hash `json:"beefy_root"`
	// LeafIndex is the position of BlockOutputRoot in the log, from 0.
	LeafIndex uint64 `json:"leaf_index"`
	// Inner is the Merkle path from YieldHash to BlockOutputRoot, and Outer is the path from there
	// to BeefyRoot.
	Inner WBProof  `json:"inner"`
	Outer MMRProof `json:"outer"`
}

// UnmarshalJSON decodes a proof. The error wraps ErrMalformed if a field is
// missing or malformed.
func (p *AccumulationOutputProof) UnmarshalJSON(raw []byte) error {
	type plain AccumulationOutputProof
	return decodeFields("accumulation output proof", raw, (*plain)(p), "yield_hash", "block_output_root", "beefy_root", "leaf_index", "inner", "outer")
}

// BeefyMMRProof proves that the accumulation-output log has a leaf at a given
// position.
type BeefyMMRProof struct {
	// Leaf is the Merkle root over the hashes that services yielded in one block, as in
	// AccumulationOutputProof.BlockOutputRoot.
	Leaf Hash `json:"leaf"`
	// BeefyRoot is the super-peak of the log: one hash over the whole log. Proof is the path from
	// Leaf to BeefyRoot.
	BeefyRoot Hash     `json:"beefy_root"`
	Proof     MMRProof `json:"proof"`
}

// UnmarshalJSON decodes a proof. The error wraps ErrMalformed if a field is
// missing or malformed.
func (p *BeefyMMRProof) UnmarshalJSON(raw []byte) error {
	type plain BeefyMMRProof
	return decodeFields("BEEFY MMR proof", raw, (*plain)(p), "leaf", "beefy_root", "proof")
}

// WBProof is a path from a leaf to the root of a well-balanced Merkle tree (GP E.1).
type WBProof struct {
	// LeafIndex is the position of the leaf, from 0 to LeafCount-1.
	LeafIndex uint32 `json:"leaf_index"`
	LeafCount uint32 `json:"leaf_count"`
	// Path has the siblings on the way from the leaf to the root. A sibling is
	// usually a hash of 32 bytes. If the sibling is itself a leaf, Path has the
	// leaf's 36 bytes, because the tree does not hash its leaves (GP E.1.1).
	// JIP-2 nevertheless calls every sibling a hash.
	Path [][]byte `json:"path"`
}

// outputSize is the size in bytes of a leaf in the tree over a block's outputs:
// the id of the service and the hash that the service yielded.
const outputSize = 4 + len(Hash{})

// UnmarshalJSON decodes a path. The error wraps ErrMalformed if a field is
// missing or malformed, if the tree has no such leaf, or if the path is longer
// than the tree is high.
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

// MMRProof is a path from a leaf of the accumulation-output log to the peaks of the log, which is a
// Merkle mountain range (GP E.2).
type MMRProof struct {
	// LeafIndex is the position of the leaf in the log, from 0. Each block
	// appends one leaf.
	LeafIndex uint64 `json:"leaf_index"`
	// Peaks has the peaks of the log, ordered by height. Entry i is the root of
	// a tree of 2^i leaves, or nil if the log has no such tree.
	Peaks []*Hash `json:"peaks"`
	// MountainPath has the siblings on the way from the leaf to the peak of its
	// tree.
	MountainPath []Hash `json:"mountain_path"`
}

// maxHeight is the maximum number of peaks of a log. A log of n leaves has one
// peak for each binary digit 1 of n, and n is a uint64.
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

// BeefyCommitments are signatures of validators over BeefyRoot, which is the
// BEEFY root of a final block.
type BeefyCommitments struct {
	BeefyRoot Hash `json:"beefy_root"`
	// Commitments has the signatures. They should be in ascending order of
	// their validators and without duplicates, but the client does not check
	// that.
	Commitments []BeefyCommitment `json:"commitments"`
}

// maxCommitments is the maximum size in bytes of the JSON of commitments. The commitments of 1,023
// validators take about 110 KiB.
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
	// ValidatorIndex is the validator's index in the set of validators that is active after the
	// block. Signature has 48 bytes: a compressed point of G1 of the curve BLS12-381.
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

// decodeFields decodes a JSON object that must have all required fields.
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

// decodeBlob decodes padded base64 whose decoded size is one of sizes.
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
