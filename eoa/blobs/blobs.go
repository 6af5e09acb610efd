// Package blobs lets a program send blob transactions (EIP-4844) with package eoa.
// It exports nothing; a program imports it for its side effect:
//
//	import _ "github.com/jamq/jamq/eoa/blobs"
//
// The import links the code for KZG commitments and proofs, which makes a program
// 1.4 MB larger. The trusted setup is loaded with the first blob. Without the
// import, requests of kind Blob are refused with ErrInvalidRequest.
package blobs

import (
	"github.com/ethereum/go-ethereum/crypto/kzg4844"

	"github.com/jamq/jamq/eoa/internal/account"
)

func init() { account.UseKZG(account.KZG{Commit: commit, Prove: prove}) }

func commit(blob []byte) ([]byte, error) {
	c, err := kzg4844.BlobToCommitment((*kzg4844.Blob)(blob))
	return c[:], err
}

func prove(blob, commitment []byte, cells bool) ([]byte, error) {
	if !cells {
		p, err := kzg4844.ComputeBlobProof((*kzg4844.Blob)(blob), kzg4844.Commitment(commitment))
		return p[:], err
	}
	proofs, err := kzg4844.ComputeCellProofs((*kzg4844.Blob)(blob))
	var all []byte
	for i := range proofs {
		all = append(all, proofs[i][:]...)
	}
	return all, err
}
