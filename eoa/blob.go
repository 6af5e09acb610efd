package eoa

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// This file has the rules of blob transactions (EIP-4844), except their fields
// and prices. The comment of [Blob] explains them.

const (
	// MaxBlobs is the maximum number of blobs in a request: the limit of one
	// transaction on Ethereum (EIP-7594).
	MaxBlobs = 6
	// BlobSize is the size of a blob in bytes. A blob is 4096 big-endian
	// numbers of 32 bytes, each below the order of the scalar field of
	// BLS12-381.
	BlobSize = len(kzg4844.Blob{})
	// MaxPendingBlobs is the maximum number of blobs of an account's requests
	// without a nonce. They take 32 MiB, which a worker may read at once.
	MaxPendingBlobs = 256
	// minBlobBumpPercent is the minimum price increase that go-ethereum's pool
	// accepts for the replacement of a blob transaction, in percent.
	minBlobBumpPercent = 100

	// gasPerBlob is the blob gas of one blob.
	gasPerBlob = 1 << 17
	// maxBlobTxs is the number of blob transactions that go-ethereum's pool
	// keeps per account.
	maxBlobTxs = 16
)

// scalarOrder is the order of BLS12-381's scalar field (EIP-4844's
// BLS_MODULUS).
var scalarOrder = uint256.MustFromHex("0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001").Bytes32()

// BlobChain is a Chain that can return the price of blobs. On other chains
// requests of kind Blob wait.
type BlobChain interface {
	Chain
	// LookBlobs is Look, and also sets Look.BlobFee. If the chain has no blobs,
	// BlobFee stays 0.
	LookBlobs(ctx context.Context, a common.Address) (Look, error)
}

// validateBlobs returns an error if the blobs can never be sent.
func (r *Request) validateBlobs() error {
	if r.Kind != Blob {
		if len(r.Blobs) > 0 || r.MaxBlobFee != nil {
			return fmt.Errorf("%w: %d blobs or a blob price limit with kind %d, want kind Blob", ErrInvalidRequest, len(r.Blobs), r.Kind)
		}
		return nil
	}
	if r.To == nil {
		return fmt.Errorf("%w: a blob transaction cannot create a contract: To is nil", ErrInvalidRequest)
	}
	if len(r.Blobs) == 0 || len(r.Blobs) > MaxBlobs {
		return fmt.Errorf("%w: %d blobs, want 1 to %d", ErrInvalidRequest, len(r.Blobs), MaxBlobs)
	}
	for i, b := range r.Blobs {
		if len(b) != BlobSize {
			return fmt.Errorf("%w: blob %d has %d bytes, want %d", ErrInvalidRequest, i, len(b), BlobSize)
		}
		for at := 0; at < BlobSize; at += len(scalarOrder) {
			if bytes.Compare(b[at:at+len(scalarOrder)], scalarOrder[:]) >= 0 {
				return fmt.Errorf("%w: blob %d: the number at byte %d is not below %x", ErrInvalidRequest, i, at, scalarOrder)
			}
		}
	}
	return nil
}

// BlobHashes returns the versioned hashes of the request's blobs, in order; nil
// if it has none. It returns an error that wraps ErrInvalidRequest if the blobs
// are invalid.
func (r *Request) BlobHashes() ([]common.Hash, error) {
	if len(r.Blobs) == 0 {
		return nil, nil
	}
	if err := r.validateBlobs(); err != nil {
		return nil, err
	}
	return blobHashes(r.Blobs)
}

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

// noopBlobs are the blobs of a blob transaction that does nothing.
var noopBlobs = [][]byte{make([]byte, BlobSize)}

// blobs returns the blobs of the job's transaction.
func (j *job) blobs() [][]byte {
	if j.Record.Kind == Blob && j.Noop {
		return noopBlobs
	}
	return j.Record.Blobs
}

// blobTransaction adds the blob hashes and the blob price to tx. The blobs are
// not attached.
func (j *job) blobTransaction(tx *types.BlobTx) (*types.Transaction, error) {
	var err error
	if tx.BlobHashes, err = blobHashes(j.blobs()); err != nil {
		return nil, err
	}
	tx.BlobFeeCap = &j.Fees.Blob
	return types.NewTx(tx), nil
}

// blobsOf returns the blobs that an attempt is sent with.
func (r *Record) blobsOf(a *Attempt) [][]byte {
	switch {
	case r.Kind == Blob && a.Noop:
		return noopBlobs
	case a.Blobs != nil:
		return a.Blobs
	}
	return r.Blobs
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

// prove returns all commitments to blobs, followed by a proof of each blob, or
// of each cell, which takes a hundred times as long.
func prove(blobs [][]byte, cells bool) ([]byte, error) {
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

// wire returns the bytes as nodes take them: one list with the transaction, the
// blobs, and their commitments and proofs.
func (o *outgoing) wire(cells bool) ([]byte, error) {
	if len(o.Blobs) == 0 || len(o.Raw) == 0 {
		return o.Raw, nil
	}
	proofs := o.Proofs
	if len(proofs) != proofsSize(len(o.Blobs), cells) { // Config.CellProofs changed since
		var err error
		if proofs, err = prove(o.Blobs, cells); err != nil {
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

// keepBlobs copies the request's blobs to its attempts before the request gets
// others, because the attempts may be sent again.
func (r *Record) keepBlobs(others [][]byte) {
	if slices.EqualFunc(r.Blobs, others, bytes.Equal) {
		return
	}
	for k := range r.Attempts {
		if a := &r.Attempts[k]; a.Blobs == nil && !a.Noop && !a.Void {
			a.Blobs = r.Blobs
		}
	}
}

// dropBlobs drops the blobs of a record that has ended: they will not be sent
// again.
func (r *Record) dropBlobs() {
	if !r.State.Terminal() {
		return
	}
	r.Blobs = nil
	for k := range r.Attempts {
		r.Attempts[k].dropBlobs()
	}
}

func (a *Attempt) dropBlobs() { a.Blobs, a.Proofs = nil, nil }

// pools counts an account's transactions in flight by the node pool that they
// belong to.
type pools struct{ blobs, others int }

func (v *view) pools() (p pools) {
	for i := range v.Open {
		if r := &v.Open[i]; r.inFlight() {
			p.add(r.Kind)
		}
	}
	return p
}

func (p *pools) add(k Kind) {
	if k == Blob {
		p.blobs++
	} else {
		p.others++
	}
}

// takes reports whether nodes take one more transaction of kind k.
func (p *pools) takes(k Kind) bool {
	if k == Blob {
		return p.others == 0 && p.blobs < maxBlobTxs
	}
	return p.blobs == 0
}

// filler returns the kind of a noop that fills nonce. It is for the pool of the
// next open record.
func (v *view) filler(nonce uint64) Kind {
	at, _ := v.find(nonce)
	if at < len(v.Open) && v.Open[at].Kind == Blob {
		return Blob
	}
	return DynamicFee
}

// wantsBlobs reports whether the price of blobs is needed.
func (e *Executor) wantsBlobs() bool {
	if e.view.pools().blobs > 0 {
		return true
	}
	for i := range e.inbox.pending {
		if e.inbox.pending[i].Kind == Blob {
			return true
		}
	}
	return false
}

// canReplace returns an error that wraps ErrInvalidRequest if no node takes
// payload as a replacement of r.
func (r *Request) canReplace(payload *Request) error {
	if (r.Kind == Blob) != (payload.Kind == Blob) {
		return fmt.Errorf("%w: kind %d cannot replace kind %d: blob transactions are replaced only by blob transactions", ErrInvalidRequest, payload.Kind, r.Kind)
	}
	return nil
}
