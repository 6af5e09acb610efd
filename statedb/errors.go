package statedb

import "errors"

var (
	// ErrUnknownRoot is returned if the root was never published, or was
	// discarded.
	ErrUnknownRoot = errors.New("statedb: unknown root")
	// ErrInUse is returned by Discard if the root is canonical or pinned.
	ErrInUse = errors.New("statedb: root is in use")
	// ErrNotPinned is returned by Unpin if there is no pin to remove.
	ErrNotPinned = errors.New("statedb: not pinned")
	// ErrStaged is returned if the call would lose staged writes.
	ErrStaged = errors.New("statedb: writes are staged")
	// ErrClone is returned if a clone would move or discard the node's state.
	ErrClone = errors.New("statedb: not allowed on a clone")
	// ErrBalanceRange is returned for a balance above the 128 bits of EIP-7864.
	ErrBalanceRange = errors.New("statedb: balance exceeds 128 bits")
	// ErrCodeSize is returned for code whose size does not fit into the 3 bytes
	// of EIP-7864.
	ErrCodeSize = errors.New("statedb: code too long")
	// ErrNotInWitness is returned if a stateless view needs a value that its
	// witness does not prove.
	ErrNotInWitness = errors.New("statedb: not in the witness")
	// ErrStateless is returned if a stateless view, which has no store, would
	// need one.
	ErrStateless = errors.New("statedb: the view is stateless")
	// ErrNoReadLog is returned if the view's log of reads is off.
	ErrNoReadLog = errors.New("statedb: no log of reads")
	// ErrExport is returned by Import if the data is damaged, or leads to
	// another root.
	ErrExport = errors.New("statedb: invalid export")
	// ErrWitness is returned for a witness that is malformed or forged, belongs
	// to another root or other writes, or has raw keys that no witness may
	// have.
	ErrWitness = errors.New("statedb: invalid witness")
	// ErrUnboundCode is returned if code was read whose hash is not that of an
	// account read.
	ErrUnboundCode = errors.New("statedb: code without an account")
	// ErrUnknownCode is returned if an account has a code hash for which no
	// code was set.
	ErrUnknownCode = errors.New("statedb: unknown code")
	// ErrDisk is returned when the disk has failed. The contents of the disk
	// are unknown then, so the store refuses changes until it is opened again.
	ErrDisk = errors.New("statedb: disk failed")
	// ErrCorrupt is returned by Open if the records of the disk are not those
	// that a store writes.
	ErrCorrupt = errors.New("statedb: corrupt")
	// ErrConfig is returned for a Config that is invalid, and for a disk or an
	// export of a tree with another layout.
	ErrConfig = errors.New("statedb: invalid config")
)
