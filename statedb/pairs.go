//go:build amd64 || arm64

package statedb

import "github.com/prysmaticlabs/gohashtree"

// sha256Pairs hashes many pairs at once with SHA-256; see ubt.Hasher.Pairs.
var sha256Pairs = gohashtree.HashChunks
