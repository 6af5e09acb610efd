package feed

import (
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit"
)

var (
	// ErrApart marks a chain of a node that does not continue the delivered blocks.
	ErrApart = fmt.Errorf("%w: its chain does not continue the delivered one", submit.ErrContradiction)
	// ErrExcludes marks such a chain that does not have the finalized block.
	ErrExcludes = fmt.Errorf("%w: it excludes the finalized block", ErrApart)
)

// Exclude returns an error that wraps ErrExcludes and names both blocks: a block of
// a node, and the finalized one.
func (c Chain[T]) Exclude(hash jamq.HeaderHash, slot jamq.Slot) error {
	final := c.Tree.Finalized()
	return fmt.Errorf("%w: block %s of slot %d is on a chain without block %s of slot %d, which was final before", ErrExcludes, hash, slot, final.Hash, final.Slot)
}

// LostAfter is the default number of slots after which a feed gives up nodes whose
// chain contradicts the delivered blocks.
const LostAfter = 16

// Contradiction measures for how long the chain of a node has contradicted the
// delivered blocks. A node contradicts itself for a while when it restarts or
// fetches old blocks, so that only a contradiction that lasts is certain. The zero
// value means that there is none.
type Contradiction struct {
	noted time.Time     // last call of Note
	lasts time.Duration // as far as the calls of Note show it
}

// Note returns err, by which the node contradicts the delivered blocks. If the
// contradiction has lasted longer than a number of slots, the error wraps lost too.
// The time between two calls counts for one slot at most, so that a few calls far
// apart prove nothing about the time between them.
func (c *Contradiction) Note(lost error, slots int, slot time.Duration, err error) error {
	now := time.Now()
	if !c.noted.IsZero() {
		c.lasts += min(now.Sub(c.noted), slot)
	}
	c.noted = now
	if c.lasts > time.Duration(slots)*slot {
		return fmt.Errorf("%w: %w", lost, err)
	}
	return err
}

// End notes that the node contradicts nothing.
func (c *Contradiction) End() { *c = Contradiction{} }
