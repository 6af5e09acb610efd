//go:build !amd64 && !arm64

package statedb

// sha256Pairs is nil, so that pairs are hashed one by one: gohashtree knows two architectures and does not build on others, such as RISC-V.
var sha256Pairs func(out, in [][32]byte)
