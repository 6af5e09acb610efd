package statedb

import "errors"

var (
	// ErrUnknownRoot: no tree with that root is published, or it was discarded.
	ErrUnknownRoot = errors.New("statedb: unknown root")
	// ErrInUse: the root is canonical or pinned.
	ErrInUse = errors.New("statedb: root is in use")
	// ErrNotPinned: there is no pin to take back.
	ErrNotPinned = errors.New("statedb: not pinned")
	// ErrStaged: the view has staged writes, which would be lost.
	ErrStaged = errors.New("statedb: writes are staged")
	// ErrClone: a clone cannot do what moves or forgets the node's state.
	ErrClone = errors.New("statedb: not on a clone")
	// ErrBalanceRange: a balance needs more than the 128 bits that EIP-7864 gives it.
	ErrBalanceRange = errors.New("statedb: balance exceeds 128 bits")
	// ErrCodeSize: code is longer than the 3 bytes that EIP-7864 gives its size can say.
	ErrCodeSize = errors.New("statedb: code too long")
	// ErrNotInWitness: a stateless view was asked for what its witness does not show.
	ErrNotInWitness = errors.New("statedb: not in the witness")
	// ErrStateless: a stateless view has no store.
	ErrStateless = errors.New("statedb: the view is stateless")
	// ErrWitness: a witness is malformed, forged, or of another root, or not of these writes, or it shows raw keys that no witness may show.
	ErrWitness = errors.New("statedb: bad witness")
	// ErrUnboundCode: code was read that no account has, as far as code hashes were read.
	ErrUnboundCode = errors.New("statedb: code without an account")
	// ErrUnknownCode: an account has the hash of code that nobody set.
	ErrUnknownCode = errors.New("statedb: unknown code")
	// ErrDisk: the disk failed. It is not known what it holds now, so the store takes no more changes until it is opened again.
	ErrDisk = errors.New("statedb: disk failed")
	// ErrCorrupt: what a disk gives back is not what was written.
	ErrCorrupt = errors.New("statedb: corrupt")
	// ErrConfig: a Config that does not pass Validate.
	ErrConfig = errors.New("statedb: bad config")
)
