package statedb

import "errors"

var (
	// ErrUnknownRoot is returned if the root was never published or was discarded.
	ErrUnknownRoot = errors.New("statedb: unknown root")
	// ErrInUse is returned by Discard if the root is canonical or pinned, and therefore cannot be
	// deleted.
	ErrInUse = errors.New("statedb: root is in use")
	// ErrNotPinned is returned by Unpin if there is no pin to remove.
	ErrNotPinned = errors.New("statedb: not pinned")
	// ErrStaged is returned if a call would lose staged writes. Call Commit or Reset first.
	ErrStaged = errors.New("statedb: writes are staged")
	// ErrClone is returned by a copy of a [Facade] if a host calls a method on it that would move
	// or discard the state of the node.
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
	// ErrNoReadLog is returned if a call needs the log of reads, but View.DisableReadLog has turned
	// it off.
	ErrNoReadLog = errors.New("statedb: no log of reads")
	// ErrExport is returned by Import if the exported data is damaged, or has a
	// root other than the expected one.
	ErrExport = errors.New("statedb: invalid export")
	// ErrWitness is returned for a witness that proves nothing, because it is
	// malformed or forged, belongs to another root or to other writes, or contains
	// raw keys that no witness may contain.
	ErrWitness = errors.New("statedb: invalid witness")
	// ErrUnboundCode is returned by Witness if the execution has read code by its
	// hash, but has not read an account with this code hash. A verifier could then
	// not know that the code belongs to the state.
	ErrUnboundCode = errors.New("statedb: code without an account")
	// ErrUnknownCode is returned if no code was ever set for a requested hash, for
	// example for the code hash of an account.
	ErrUnknownCode = errors.New("statedb: unknown code")
	// ErrDisk is returned after the disk has failed. The contents of the disk are
	// then unknown, so the store refuses all changes until the host opens it again.
	ErrDisk = errors.New("statedb: disk failed")
	// ErrCorrupt is returned if the records on the disk are damaged: no store can
	// have written them, or their tree has a root other than the recorded one.
	ErrCorrupt = errors.New("statedb: corrupt")
	// ErrConfig is returned for an invalid Config, and for a disk or an export whose tree has
	// another layout.
	ErrConfig = errors.New("statedb: invalid config")
)
