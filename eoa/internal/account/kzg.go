package account

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/ethereum/go-ethereum/rlp"
)

// committed returns a blob and its commitment.
func committed(raw []byte) (*kzg4844.Blob, kzg4844.Commitment, error) {
	if len(raw) != BlobSize {
		return nil, kzg4844.Commitment{}, fmt.Errorf("%d bytes, want %d", len(raw), BlobSize)
	}
	blob := (*kzg4844.Blob)(raw)
	commitment, err := kzg4844.BlobToCommitment(blob)
	return blob, commitment, err
}

// blobHashes returns the versioned hashes of blobs.
func blobHashes(blobs [][]byte) ([]common.Hash, error) {
	hashes := make([]common.Hash, len(blobs))
	for i := range blobs {
		_, commitment, err := committed(blobs[i])
		if err != nil {
			return nil, fmt.Errorf("%w: blob %d: %w", ErrInvalidRequest, i, err)
		}
		hashes[i] = kzg4844.CalcBlobHashV1(sha256.New(), &commitment)
	}
	return hashes, nil
}

const (
	// proofSize is the size of a commitment to a blob, and of a proof
	// (EIP-4844).
	proofSize = len(kzg4844.Proof{})
	// cellsPerBlob is the number of cells of a blob (EIP-7594).
	cellsPerBlob = 128
)

// proofsSize returns the size of the commitments and proofs of the given number
// of blobs.
func proofsSize(blobs int, cells bool) int {
	if cells {
		return blobs * (1 + cellsPerBlob) * proofSize
	}
	return blobs * 2 * proofSize
}

// Prove returns all commitments to blobs, followed by a proof of each blob, or
// of each cell, which takes a hundred times as long.
func Prove(blobs [][]byte, cells bool) ([]byte, error) {
	var commitments, proofs []byte
	for i := range blobs {
		blob, commitment, err := committed(blobs[i])
		of := make([]kzg4844.Proof, 1)
		if err == nil && cells {
			of, err = kzg4844.ComputeCellProofs(blob)
		} else if err == nil {
			of[0], err = kzg4844.ComputeBlobProof(blob, commitment)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: blob %d: %w", ErrInvalidRequest, i, err)
		}
		commitments = append(commitments, commitment[:]...)
		for k := range of {
			proofs = append(proofs, of[k][:]...)
		}
	}
	return append(commitments, proofs...), nil
}

// Wire returns the bytes as nodes take them: one list with the transaction, the
// blobs, and their commitments and proofs.
func (o *Outgoing) Wire(cells bool) ([]byte, error) {
	if len(o.Blobs) == 0 || len(o.Raw) == 0 {
		return o.Raw, nil
	}
	proofs := o.Proofs
	if len(proofs) != proofsSize(len(o.Blobs), cells) { // Config.CellProofs changed since
		var err error
		if proofs, err = Prove(o.Blobs, cells); err != nil {
			return nil, err
		}
	}
	list := []any{rlp.RawValue(o.Raw[1:])}
	if cells {
		list = append(list, uint64(1)) // version, absent in the older form
	}
	split := func(all []byte) [][]byte { return slices.Collect(slices.Chunk(all, proofSize)) }
	commitments := len(o.Blobs) * proofSize
	body, err := rlp.EncodeToBytes(append(list, o.Blobs, split(proofs[:commitments]), split(proofs[commitments:])))
	return append(o.Raw[:1:1], body...), err
}
