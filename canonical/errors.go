package canonical

import "errors"

var (
	// ErrNotNext is returned if the number of an executed block does not follow
	// pending.
	ErrNotNext = errors.New("canonical: not the next block")
	// ErrUnknownBlock is returned if no block with that number is tracked.
	ErrUnknownBlock = errors.New("canonical: unknown block")
	// ErrFinal is returned if the call would undo a finalized block.
	ErrFinal = errors.New("canonical: block is final")
	// ErrConflict is returned if the block with the number of an item has a different commitment,
	// and if two blocks would have the same commitment.
	ErrConflict = errors.New("canonical: another block has this number")
)
