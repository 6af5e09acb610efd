package canonical

import "errors"

var (
	// ErrNotNext is returned if the number of an executed block is not the one after pending.
	ErrNotNext = errors.New("canonical: not the next block")
	// ErrUnknownBlock is returned if the tracker has no block with that number.
	ErrUnknownBlock = errors.New("canonical: unknown block")
	// ErrFinal is returned if the call would undo a finalized block.
	ErrFinal = errors.New("canonical: block is final")
	// ErrConflict is returned if the tracker has a different block with the same number as the
	// block of the call: the two commitments differ. It is also returned for a new block whose
	// commitment another block already has.
	ErrConflict = errors.New("canonical: another block has this number")
)
