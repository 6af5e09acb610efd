//go:build amd64 || arm64

package ubt

import "github.com/prysmaticlabs/gohashtree"

// sha256Pairs hashes many pairs at once with SHA-256; see Hasher.Pairs.
var sha256Pairs = gohashtree.HashChunks
