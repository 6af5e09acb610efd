package eoa

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/holiman/uint256"
)

// What is peculiar to blob transactions (EIP-4844) is in this file, but for their fields and prices. doc.go has the rules.

const (
	// MaxBlobs is how many blobs a request has at most: what one transaction may carry on Ethereum (EIP-7594).
	MaxBlobs = 6
	// BlobSize is the size of a blob in bytes: 4096 numbers of 32 bytes, big-endian, each below the order of the scalar field of BLS12-381.
	BlobSize = len(kzg4844.Blob{})
	// MinBlobBumpPercent is the least bump that go-ethereum's pool takes for the replacement of a blob transaction.
	MinBlobBumpPercent = 100

	// gasPerBlob is what a blob takes of blob gas.
	gasPerBlob = 1 << 17
	// maxBlobTxs is how many blob transactions of one account go-ethereum's pool takes.
	maxBlobTxs = 16
)

// scalarOrder is that of BLS12-381's scalar field (EIP-4844's BLS_MODULUS).
var scalarOrder = uint256.MustFromHex("0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001").Bytes32()

// BlobChain is a Chain that knows the price of blobs. On others requests of kind Blob wait.
type BlobChain interface {
	Chain
	// LookBlobs is Look, and sets Look.BlobFee. A chain that has no blobs leaves it at 0.
	LookBlobs(ctx context.Context, a common.Address) (Look, error)
}

// validateBlobs reports blobs that can never be sent.
func (r *Request) validateBlobs() error {
	if r.Kind != Blob {
		if len(r.Blobs) > 0 || r.MaxBlobFee != nil {
			return fmt.Errorf("%w: %d blobs or a limit of their price with kind %d, want none but for kind Blob", ErrInvalidRequest, len(r.Blobs), r.Kind)
		}
		return nil
	}
	if r.To == nil {
		return fmt.Errorf("%w: a blob transaction creates no contract, want To", ErrInvalidRequest)
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
				return fmt.Errorf("%w: blob %d has at byte %d a number that is not below %x", ErrInvalidRequest, i, at, scalarOrder)
			}
		}
	}
	return nil
}

// BlobHashes returns the versioned hashes of the request's blobs, in order; nil for none. The error wraps ErrInvalidRequest.
func (r *Request) BlobHashes() ([]common.Hash, error) {
	if len(r.Blobs) == 0 {
		return nil, nil
	}
	if err := r.validateBlobs(); err != nil {
		return nil, err
	}
	s := new(types.BlobTxSidecar)
	if err := commit(s, r.Blobs); err != nil {
		return nil, err
	}
	return s.BlobHashes(), nil
}

// commit adds blobs and the commitments to them. The sizes must be right.
func commit(s *types.BlobTxSidecar, blobs [][]byte) error {
	for i := range blobs {
		blob := kzg4844.Blob(blobs[i])
		commitment, err := kzg4844.BlobToCommitment(&blob)
		if err != nil {
			return fmt.Errorf("%w: blob %d: %w", ErrInvalidRequest, i, err)
		}
		s.Blobs, s.Commitments = append(s.Blobs, blob), append(s.Commitments, commitment)
	}
	return nil
}

// sidecar returns blobs with their commitments and proofs.
func sidecar(blobs [][]byte) (*types.BlobTxSidecar, error) {
	s := new(types.BlobTxSidecar)
	if err := commit(s, blobs); err != nil {
		return nil, err
	}
	for i := range s.Blobs {
		proof, err := kzg4844.ComputeBlobProof(&s.Blobs[i], s.Commitments[i])
		if err != nil {
			return nil, fmt.Errorf("%w: blob %d: %w", ErrInvalidRequest, i, err)
		}
		s.Proofs = append(s.Proofs, proof)
	}
	return s, nil
}

// noopBlobs are those of a blob transaction that does nothing.
var noopBlobs = [][]byte{make([]byte, BlobSize)}

// blobs are those of a job's transaction.
func (j *Job) blobs() [][]byte {
	if j.Record.Kind == Blob && j.Noop {
		return noopBlobs
	}
	return j.Record.Blobs
}

// blobTransaction completes a blob transaction that has all fields but those of the blobs.
func (j *Job) blobTransaction(tx *types.BlobTx) (*types.Transaction, error) {
	var err error
	if tx.Sidecar, err = sidecar(j.blobs()); err != nil {
		return nil, err
	}
	tx.BlobFeeCap, tx.BlobHashes = &j.Fees.Blob, tx.Sidecar.BlobHashes()
	return types.NewTx(tx), nil
}

// forget drops blobs that will not be sent again: those of a record that is over, and of void attempts.
func (r *Record) forget() {
	if r.State.Terminal() {
		r.Blobs = nil
	}
	for k := range r.Attempts {
		a := &r.Attempts[k]
		tx := new(types.Transaction)
		if r.Kind != Blob || !r.State.Terminal() && !a.Void || tx.UnmarshalBinary(a.Raw) != nil {
			continue
		}
		if raw, err := tx.WithoutBlobTxSidecar().MarshalBinary(); err == nil {
			a.Raw = raw
		}
	}
}

// pools counts an account's transactions in flight by the pool of nodes that they are in.
type pools struct{ blobs, others int }

func (v *View) pools() (p pools) {
	for i := range v.Open {
		if r := &v.Open[i]; r.InFlight() {
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

// takes reports whether nodes take one more of a kind.
func (p *pools) takes(k Kind) bool {
	if k == Blob {
		return p.others == 0 && p.blobs < maxBlobTxs
	}
	return p.blobs == 0
}

// filler is the kind of a noop that fills a nonce below what is in flight.
func (p *pools) filler() Kind {
	if p.blobs > 0 {
		return Blob
	}
	return DynamicFee
}

// wantsBlobs reports whether the price of blobs matters.
func (e *Executor) wantsBlobs() bool {
	if e.view.pools().blobs > 0 {
		return true
	}
	for i := range e.pending {
		if e.pending[i].Kind == Blob {
			return true
		}
	}
	return false
}

// canReplace reports, wrapping ErrInvalidRequest, a payload that no node takes in the place of a request's.
func (r *Request) canReplace(payload *Request) error {
	if (r.Kind == Blob) != (payload.Kind == Blob) {
		return fmt.Errorf("%w: kind %d in the place of %d: a blob transaction and another one never replace each other", ErrInvalidRequest, payload.Kind, r.Kind)
	}
	return nil
}
