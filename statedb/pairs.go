//go:build amd64 || arm64

package statedb

import "github.com/prysmaticlabs/gohashtree"

// sha256Pairs is SHA-256 of many pairs at once, see ubt.Hasher.Pairs.
var sha256Pairs = gohashtree.HashChunks
