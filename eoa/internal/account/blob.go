package account

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// This file has the rules of blob transactions (EIP-4844), except for their fields
// and prices. The comment of the kind [Blob] explains blob transactions
// themselves.

const (
	// MaxBlobs is the maximum number of blobs in a request: the limit of one
	// transaction on Ethereum (EIP-7594).
	MaxBlobs = 6
	// BlobSize is the size of a blob in bytes. A blob is 4096 big-endian
	// numbers of 32 bytes, each below the order of the scalar field of
	// BLS12-381.
	BlobSize = 4096 * 32
	// minBlobBumpPercent is the minimum price increase that go-ethereum's pool
	// accepts for the replacement of a blob transaction, in percent.
	minBlobBumpPercent = 100

	// gasPerBlob is the blob gas that one blob uses (EIP-4844).
	gasPerBlob = 1 << 17
	// maxBlobTxs is the number of blob transactions that go-ethereum's pool
	// keeps per account.
	maxBlobTxs = 16
)

// scalarOrder is the order of BLS12-381's scalar field (EIP-4844's
// BLS_MODULUS).
var scalarOrder = uint256.MustFromHex("0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001").Bytes32()

// validateBlobs returns an error if the request's blobs make it invalid.
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

// BlobHashes returns the versioned hashes of the request's blobs in order, or nil
// if the request has no blobs. Implementations of [Chain] need the hashes to
// estimate gas. The error wraps ErrInvalidRequest if the blobs are invalid.
func (r *Request) BlobHashes() ([]common.Hash, error) {
	if len(r.Blobs) == 0 {
		return nil, nil
	}
	if err := r.validateBlobs(); err != nil {
		return nil, err
	}
	return blobHashes(r.Blobs)
}

// blobsOf returns the blobs to send with an attempt.
func (r *Record) blobsOf(a *Attempt) [][]byte {
	switch {
	// A no-op carries one blob of zeros instead of the request's blobs.
	case r.Kind == Blob && a.Noop:
		return noopBlobs
	// The user has replaced the request after this attempt was signed. The attempt keeps the
	// blobs that its signature covers.
	case a.Blobs != nil:
		return a.Blobs
	}
	return r.Blobs
}

// keepBlobs copies the request's blobs to its earlier attempts before a replacement
// brings others.
func (r *Record) keepBlobs(others [][]byte) {
	if slices.EqualFunc(r.Blobs, others, bytes.Equal) {
		return
	}
	for k := range r.Attempts {
		// The request is about to get other blobs, but this attempt may be sent again. Let it
		// keep the blobs that its signature covers.
		if a := &r.Attempts[k]; a.Blobs == nil && !a.Noop && !a.Void {
			a.Blobs = r.Blobs
		}
	}
}

// dropBlobs deletes the blobs of a record that has ended.
func (r *Record) dropBlobs() {
	if !r.State.Terminal() {
		return
	}
	// Blobs are large, and those of an ended record are never sent again.
	r.Blobs = nil
	for k := range r.Attempts {
		r.Attempts[k].dropBlobs()
	}
}

func (a *Attempt) dropBlobs() { a.Blobs, a.Proofs = nil, nil }

// CheckReplacement returns an error that wraps ErrInvalidRequest if payload can
// never replace r, because nodes let a blob transaction be replaced only by another
// blob transaction.
func CheckReplacement(r, payload *Request) error {
	if (r.Kind == Blob) != (payload.Kind == Blob) {
		return fmt.Errorf("%w: kind %d cannot replace kind %d: blob transactions are replaced only by blob transactions", ErrInvalidRequest, payload.Kind, r.Kind)
	}
	return nil
}
