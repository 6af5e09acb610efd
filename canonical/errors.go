package canonical

import "errors"

var (
	// ErrNotNext: an executed block does not have the number after pending.
	ErrNotNext = errors.New("canonical: not the next block")
	// ErrStaleParent: blocks were executed on a head that is not pending any more.
	ErrStaleParent = errors.New("canonical: executed on a head that is gone")
	// ErrUnknownBlock: no block of that number is tracked.
	ErrUnknownBlock = errors.New("canonical: unknown block")
	// ErrFinal: the call would take a finalized block back.
	ErrFinal = errors.New("canonical: block is final")
	// ErrConflict: an item is another block than the executed one of its number.
	ErrConflict = errors.New("canonical: another block has this number")
	// ErrInvalidTag: a text is neither a tag nor a number.
	ErrInvalidTag = errors.New("canonical: invalid block tag")
)
