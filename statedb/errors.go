package statedb

import "errors"

var (
	// ErrUnknownRoot: no tree with that root is published, or it was discarded.
	ErrUnknownRoot = errors.New("statedb: unknown root")
	// ErrInUse: the root is canonical or pinned.
	ErrInUse = errors.New("statedb: root is in use")
	// ErrBalanceRange: a balance needs more than the 128 bits that EIP-7864 gives it.
	ErrBalanceRange = errors.New("statedb: balance exceeds 128 bits")
	// ErrCodeSize: code is longer than the 3 bytes that EIP-7864 gives its size can say.
	ErrCodeSize = errors.New("statedb: code too long")
)
