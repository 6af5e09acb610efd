package ledger

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrMissed is returned if a reader asks for changes so old that the log has dropped
// them.
var ErrMissed = errors.New("ledger: changes are no longer available")

// HeadChange reports that the latest block has moved by one block, forward or, after a
// reorg of JAM, back. The latest block is the newest one such that JAM has accumulated it
// and every block before it. Usually JAM accumulates the same blocks again later. If the
// queue has given up a block, a different block takes its number.
type HeadChange struct {
	// Block is the block that latest has reached or has stepped back over.
	Block *Block
	// Removed is true if latest has stepped back over the block.
	Removed bool
}

// keptChanges is the number of newest changes that the log keeps. At 400 blocks per
// second, this is enough for five minutes, which is the lifetime of a filter.
const keptChanges = 1 << 17

// HeadLog records each move of the latest block, forward or, after a reorg, backward,
// so that filters and subscriptions can follow it. Each reader has a cursor and reads
// at its own pace, so a slow reader delays neither the node nor other readers. A
// HeadLog is safe for concurrent use, but only one goroutine may call Move.
type HeadLog struct {
	mu      sync.Mutex
	line    []*Block // the blocks from the finalized one up to the latest
	changes []change
	first   uint64        // number of the first change in changes
	light   int           // number of the oldest changes whose blocks were removed
	moved   chan struct{} // closed at the next change
}

// change is a HeadChange as the log keeps it. For a block that has become final, only the
// number is kept, which saves memory, because the ledger has the block.
type change struct {
	number  uint64
	block   *Block // nil: in the ledger
	removed bool
}

// NewHeadLog returns an empty log, in which the given final block is the latest block.
func NewHeadLog(finalized *Block) *HeadLog {
	return &HeadLog{line: []*Block{finalized}, moved: make(chan struct{})}
}

// Move records that the latest block, the finalized block, or both have moved to the
// given numbers. The function block returns the executed block with a number.
func (l *HeadLog) Move(block func(number uint64) *Block, latest, finalized uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.changes)
	l.stepBack(block, latest)
	for next := l.top().NumberU64() + 1; next <= latest; next++ {
		b := block(next)
		if b == nil || b.ParentHash() != l.top().Hash() {
			break // being undone; the next move records it
		}
		l.line = append(l.line, b)
		l.changes = append(l.changes, change{next, b, false})
	}
	final := 0
	for final < len(l.line)-1 && l.line[final].NumberU64() < finalized {
		final++
	}
	clear(l.line[:final])
	l.line = l.line[final:]
	l.lighten(block)
	if len(l.changes) == before {
		return
	}
	if old := len(l.changes) - keptChanges; old > keptChanges/8 { // not one by one
		l.changes = slices.Clone(l.changes[old:])
		l.first, l.light = l.first+uint64(old), max(0, l.light-old)
	}
	close(l.moved)
	l.moved = make(chan struct{})
}

// lighten saves memory: it removes final blocks from the stored changes and keeps only
// their numbers. Readers get these blocks from the ledger.
func (l *HeadLog) lighten(block func(number uint64) *Block) {
	for ; l.light < len(l.changes) && l.changes[l.light].number < l.line[0].NumberU64(); l.light++ {
		if c := &l.changes[l.light]; block(c.number).Hash() == c.block.Hash() {
			c.block = nil
		}
	}
}

func (l *HeadLog) top() *Block { return l.line[len(l.line)-1] }

// stepBack records that the latest block moves back to the given number.
func (l *HeadLog) stepBack(block func(number uint64) *Block, latest uint64) {
	keep := len(l.line)
	for keep > 1 && (l.line[keep-1].NumberU64() > latest || !isAt(block, l.line[keep-1])) {
		keep--
	}
	// The oldest block comes first, as in geth.
	for _, b := range l.line[keep:] {
		l.changes = append(l.changes, change{b.NumberU64(), b, true})
	}
	clear(l.line[keep:])
	l.line = l.line[:keep]
}

// isAt reports whether the ledger still has this block.
func isAt(block func(number uint64) *Block, b *Block) bool {
	have := block(b.NumberU64())
	return have != nil && have.Hash() == b.Hash()
}

// Cursor returns the position after the newest change. A reader that begins there gets
// only changes that come later.
func (l *HeadLog) Cursor() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first + uint64(len(l.changes))
}

// Changes returns at most 1024 changes after a cursor. It also returns the cursor for
// the next call, and a channel that is closed when there are more changes. The function
// block returns the ledger's block with a number. The error wraps [ErrMissed] if the
// cursor is too old, or [ErrDamaged] if a block cannot be read.
func (l *HeadLog) Changes(cursor uint64, block func(number uint64) *Block) (changes []HeadChange, next uint64, more <-chan struct{}, err error) {
	defer Recover(&err)
	some, more, err := l.after(cursor)
	for _, c := range some {
		if c.block == nil {
			c.block = block(c.number)
		}
		changes = append(changes, HeadChange{c.block, c.removed})
	}
	return changes, cursor + uint64(len(some)), more, err
}

// after returns at most 1024 changes after a cursor: see Changes.
func (l *HeadLog) after(cursor uint64) (changes []change, more <-chan struct{}, err error) {
	const most = 1024
	l.mu.Lock()
	defer l.mu.Unlock()
	if end := l.first + uint64(len(l.changes)); cursor < l.first || cursor > end {
		return nil, nil, fmt.Errorf("%w: want changes from %d on, have %d to %d", ErrMissed, cursor, l.first, end)
	}
	changes = l.changes[cursor-l.first:]
	if len(changes) > most {
		done := make(chan struct{})
		close(done)
		return slices.Clone(changes[:most]), done, nil
	}
	return slices.Clone(changes), l.moved, nil
}
