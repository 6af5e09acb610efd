//go:build !amd64 && !arm64

package ubt

// sha256Pairs is nil, so that pairs are hashed one at a time. The package
// gohashtree, which hashes many at once, supports only amd64 and arm64.
var sha256Pairs func(out, in [][32]byte)
