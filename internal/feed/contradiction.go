package feed

import (
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit"
)

var (
	// ErrApart is wrapped by the error for a node whose chain does not continue the
	// delivered blocks.
	ErrApart = fmt.Errorf("%w: its chain does not continue the delivered one", submit.ErrContradiction)
	// ErrExcludes is wrapped by the error for a node whose chain does not contain the
	// finalized block. It wraps ErrApart.
	ErrExcludes = fmt.Errorf("%w: it excludes the finalized block", ErrApart)
)

// Exclude returns an error for a node whose chain does not contain the finalized block.
// The error names the node's block, given by hash and slot, and the finalized block. It
// wraps ErrExcludes.
func (c Chain[T]) Exclude(hash jamq.HeaderHash, slot jamq.Slot) error {
	final := c.Tree.Finalized()
	return fmt.Errorf("%w: block %s of slot %d is on a chain without block %s of slot %d, which was final before", ErrExcludes, hash, slot, final.Hash, final.Slot)
}

// LostAfter is the default number of slots after which a feed gives up nodes whose
// chain contradicts the delivered blocks.
const LostAfter = 16

// Contradiction measures how long a node's chain has contradicted the delivered blocks.
// A node that restarts or fetches old blocks contradicts itself for a while, so only a
// lasting contradiction proves that its chain is a different one. The zero value means
// that there is no contradiction.
type Contradiction struct {
	noted time.Time     // time of the last call of Note
	lasts time.Duration // duration so far, as measured by Note
}

// Note records that the node contradicts the delivered blocks now, and returns err,
// which describes the contradiction. If the contradiction has lasted longer than the
// given number of slots, the returned error also wraps lost.
//
// The time between two calls counts as at most one slot, because a few calls far apart
// prove nothing about the time between them.
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

// End records that the node no longer contradicts the delivered blocks.
func (c *Contradiction) End() { *c = Contradiction{} }
