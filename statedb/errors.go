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
	// ErrStaged is returned if a call would lose staged writes. Commit them or call Reset first.
	ErrStaged = errors.New("statedb: writes are staged")
	// ErrClone is returned if a copy of the facade would move or discard the state of the node.
	ErrClone = errors.New("statedb: not allowed on a clone")
	// ErrBalanceRange is returned for a balance above the 128 bits of EIP-7864.
	ErrBalanceRange = errors.New("statedb: balance exceeds 128 bits")
	// ErrCodeSize is returned for code whose size does not fit into the 3 bytes
	// of EIP-7864.
	ErrCodeSize = errors.New("statedb: code too long")
	// ErrNotInWitness is returned if a stateless view needs a value that its
	// witness does not prove.
	ErrNotInWitness = errors.New("statedb: not in the witness")
	// ErrStateless is returned by calls that need a store, on a view that has only a witness.
	ErrStateless = errors.New("statedb: the view is stateless")
	// ErrNoReadLog is returned if a call needs the log of reads, which was turned off for this
	// view.
	ErrNoReadLog = errors.New("statedb: no log of reads")
	// ErrExport is returned by Import if the data is damaged, or leads to
	// another root.
	ErrExport = errors.New("statedb: invalid export")
	// ErrWitness is returned for a witness that proves nothing: it is malformed or forged, belongs
	// to another root or to other writes, or has raw keys that no witness may have.
	ErrWitness = errors.New("statedb: invalid witness")
	// ErrUnboundCode is returned if the execution has read code by a hash, but no account with this
	// code hash. A verifier could then not know that the code belongs to the state.
	ErrUnboundCode = errors.New("statedb: code without an account")
	// ErrUnknownCode is returned if an account has a code hash for which no
	// code was set.
	ErrUnknownCode = errors.New("statedb: unknown code")
	// ErrDisk is returned when the disk has failed. The contents of the disk are then unknown, so
	// the store refuses all changes until it is opened again.
	ErrDisk = errors.New("statedb: disk failed")
	// ErrCorrupt is returned by Open if the records of the disk are not those
	// that a store writes.
	ErrCorrupt = errors.New("statedb: corrupt")
	// ErrConfig is returned for a Config that is invalid, and for a disk or an
	// export of a tree with another layout.
	ErrConfig = errors.New("statedb: invalid config")
)
