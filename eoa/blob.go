package eoa

import (
	"bytes"
	"cmp"
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

// What is peculiar to blob transactions (EIP-4844) is in this file, but for their fields and prices. doc.go has the rules.

const (
	// MaxBlobs is how many blobs a request has at most: what one transaction may carry on Ethereum (EIP-7594).
	MaxBlobs = 6
	// BlobSize is the size of a blob in bytes: 4096 numbers of 32 bytes, big-endian, each below the order of the scalar field of BLS12-381.
	BlobSize = len(kzg4844.Blob{})
	// MaxPendingBlobs is how many blobs the requests of an account without a nonce have together: 32 MiB, because a worker may read all of them at once.
	MaxPendingBlobs = 256
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
	return blobHashes(r.Blobs)
}

// committed returns a blob and the commitment to it.
func committed(raw []byte) (*kzg4844.Blob, kzg4844.Commitment, error) {
	if len(raw) != BlobSize {
		return nil, kzg4844.Commitment{}, fmt.Errorf("%d bytes, want %d", len(raw), BlobSize)
	}
	blob := (*kzg4844.Blob)(raw)
	commitment, err := kzg4844.BlobToCommitment(blob)
	return blob, commitment, err
}

// blobHashes are the versioned hashes of blobs.
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

// noopBlobs are those of a blob transaction that does nothing.
var noopBlobs = [][]byte{make([]byte, BlobSize)}

// blobs are those of a job's transaction.
func (j *Job) blobs() [][]byte {
	if j.Record.Kind == Blob && j.Noop {
		return noopBlobs
	}
	return j.Record.Blobs
}

// blobTransaction completes a blob transaction that has all fields but those of the blobs, which stay outside.
func (j *Job) blobTransaction(tx *types.BlobTx) (*types.Transaction, error) {
	var err error
	if tx.BlobHashes, err = blobHashes(j.blobs()); err != nil {
		return nil, err
	}
	tx.BlobFeeCap = &j.Fees.Blob
	return types.NewTx(tx), nil
}

// blobsOf are those that an attempt is sent with.
func (r *Record) blobsOf(a *Attempt) [][]byte {
	switch {
	case r.Kind == Blob && a.Noop:
		return noopBlobs
	case a.Blobs != nil:
		return a.Blobs
	}
	return r.Blobs
}

// proofSize is the size of a commitment to a blob, and of a proof (EIP-4844); cellsPerBlob how many a blob has (EIP-7594).
const proofSize, cellsPerBlob = len(kzg4844.Proof{}), 128

// proofsSize is the size of what proves so many blobs.
func proofsSize(blobs int, cells bool) int {
	if cells {
		return blobs * (1 + cellsPerBlob) * proofSize
	}
	return blobs * 2 * proofSize
}

// prove returns what proves blobs: all commitments, and then a proof of each blob, or of each of its cells, which takes a hundred times as long.
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

// wire returns bytes as nodes take them: in one list with the blobs and what proves them.
func (o *Outgoing) wire(cells bool) ([]byte, error) {
	if len(o.Blobs) == 0 || len(o.Raw) == 0 {
		return o.Raw, nil
	}
	proofs := o.Proofs
	if len(proofs) != proofsSize(len(o.Blobs), cells) { // it was signed under another setting
		var err error
		if proofs, err = prove(o.Blobs, cells); err != nil {
			return nil, err
		}
	}
	list := []any{rlp.RawValue(o.Raw[1:])}
	if cells {
		list = append(list, uint64(1)) // the version, which the older form does not have
	}
	split := func(all []byte) [][]byte { return slices.Collect(slices.Chunk(all, proofSize)) }
	commitments := len(o.Blobs) * proofSize
	body, err := rlp.EncodeToBytes(append(list, o.Blobs, split(proofs[:commitments]), split(proofs[commitments:])))
	return append(o.Raw[:1:1], body...), err
}

// keepBlobs leaves their blobs to attempts whose request gets others: they may be sent again.
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

// forget drops the blobs of a record that is over: they will not be sent again.
func (r *Record) forget() {
	if !r.State.Terminal() {
		return
	}
	r.Blobs = nil
	for k := range r.Attempts {
		r.Attempts[k].forget()
	}
}

func (a *Attempt) forget() { a.Blobs, a.Proofs = nil, nil }

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

// filler is the kind of a noop that fills a nonce: it goes to the pool of what comes next.
func (v *View) filler(nonce uint64) Kind {
	at, _ := slices.BinarySearchFunc(v.Open, nonce, func(o Record, n uint64) int { return cmp.Compare(o.Nonce, n) })
	if at < len(v.Open) && v.Open[at].Kind == Blob {
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
