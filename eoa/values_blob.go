// go test ./internal/tidy -update writes this file from eoa/internal/account/blob.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

const (
	// MaxBlobs is the maximum number of blobs in a request: the limit of one
	// transaction on Ethereum (EIP-7594).
	MaxBlobs = account.MaxBlobs
	// BlobSize is the size of a blob in bytes. A blob is 4096 big-endian
	// numbers of 32 bytes, each below the order of the scalar field of
	// BLS12-381.
	BlobSize = account.BlobSize
	// MaxPendingBlobs is the maximum number of blobs of an account's requests
	// without a nonce. They take 32 MiB, which a worker may read at once.
	MaxPendingBlobs = account.MaxPendingBlobs
)
