package account

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"
)

// KZG computes the commitments and proofs of blobs (EIP-4844, EIP-7594). Package
// eoa/blobs provides the functions.
type KZG struct {
	// Commit returns the commitment to a blob, which has 48 bytes.
	Commit func(blob []byte) ([]byte, error)
	// Prove returns the proof of a blob or, if cells is set, the proofs of all its
	// cells. Each proof has 48 bytes.
	Prove func(blob, commitment []byte, cells bool) ([]byte, error)
}

// kzg is set by package eoa/blobs when the program starts. Programs that do not
// import eoa/blobs do not link the cryptography.
var kzg KZG

// UseKZG sets the functions that compute commitments and proofs. Package eoa/blobs
// calls it at program start, before any other function of this package is used.
func UseKZG(k KZG) { kzg = k }

var errNoKZG = errors.New("the program does not import eoa/blobs")

// commit returns the commitment to a blob, if the program imports eoa/blobs.
func commit(blob []byte) ([]byte, error) {
	if len(blob) != BlobSize {
		return nil, fmt.Errorf("%d bytes, want %d", len(blob), BlobSize)
	}
	if kzg.Commit == nil {
		return nil, errNoKZG
	}
	return kzg.Commit(blob)
}

// blobHashes returns the versioned hash of each blob (EIP-4844).
func blobHashes(blobs [][]byte) ([]common.Hash, error) {
	const version = 1
	hashes := make([]common.Hash, len(blobs))
	for i := range blobs {
		commitment, err := commit(blobs[i])
		if err != nil {
			return nil, fmt.Errorf("%w: blob %d: %w", ErrInvalidRequest, i, err)
		}
		hashes[i] = sha256.Sum256(commitment)
		hashes[i][0] = version
	}
	return hashes, nil
}

const (
	// proofSize is the size of a commitment to a blob, and of a proof
	// (EIP-4844).
	proofSize = 48
	// cellsPerBlob is the number of cells of a blob (EIP-7594).
	cellsPerBlob = 128
)

// proofsSize returns the total size of the blobs' commitments and proofs.
func proofsSize(blobs int, cells bool) int {
	if cells {
		return blobs * (1 + cellsPerBlob) * proofSize
	}
	return blobs * 2 * proofSize
}

// Prove returns the commitments to all blobs, followed by their proofs. If cells is
// set, it proves every cell of a blob instead of the blob as a whole, which takes a
// hundred times as long.
func Prove(blobs [][]byte, cells bool) ([]byte, error) {
	var commitments, proofs []byte
	for i := range blobs {
		commitment, err := commit(blobs[i])
		var of []byte
		if err == nil {
			of, err = kzg.Prove(blobs[i], commitment, cells)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: blob %d: %w", ErrInvalidRequest, i, err)
		}
		commitments, proofs = append(commitments, commitment...), append(proofs, of...)
	}
	return append(commitments, proofs...), nil
}

// Wire returns the transaction in the encoding that nodes accept. With blobs, the
// encoding is a list of the transaction, the blobs, and their commitments and
// proofs.
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
