//go:build amd64 || arm64

package ubt

import "github.com/prysmaticlabs/gohashtree"

var shaPairs = gohashtree.HashChunks
