package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jamq/jamq/canonical"
)

// ErrMissed is returned if the requested changes are too old.
var ErrMissed = errors.New("node: changes are no longer available")

// HeadChange is one step of the latest block. After a JAM reorg latest steps
// back over blocks that are no longer accumulated. In most cases the same block
// is accumulated again. It is a different block if the queue gave the first one
// up.
type HeadChange struct {
	Block *Block
	// Removed means that latest stepped back over the block.
	Removed bool
}

// keptChanges is the number of steps that are kept: five minutes, the lifetime
// of a filter, at 400 blocks per second.
const keptChanges = 1 << 17

// headLog records how the latest block moved. Each reader has a cursor and
// reads at its own pace, so a slow reader delays neither the node nor other
// readers. It is safe for concurrent use; only the node calls move.
type headLog struct {
	mu      sync.Mutex
	line    []*Block // blocks that are latest or below, from the finalized one on
	changes []HeadChange
	first   uint64        // number of changes[0]
	moved   chan struct{} // closed at the next change
}

func newHeadLog(genesis *Block) *headLog {
	return &headLog{line: []*Block{genesis}, moved: make(chan struct{})}
}

// move records the new numbers of latest and finalized, with the executed
// blocks.
func (l *headLog) move(block func(number uint64) *Block, latest, finalized uint64) {
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
		l.changes = append(l.changes, HeadChange{Block: b})
	}
	final := 0
	for final < len(l.line)-1 && l.line[final].NumberU64() < finalized {
		final++
	}
	clear(l.line[:final])
	l.line = l.line[final:]
	if len(l.changes) == before {
		return
	}
	if old := len(l.changes) - keptChanges; old > keptChanges/8 { // not one by one
		l.changes = append([]HeadChange(nil), l.changes[old:]...)
		l.first += uint64(old)
	}
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *headLog) top() *Block { return l.line[len(l.line)-1] }

// stepBack removes blocks above latest and blocks that are no longer in the
// ledger. It records them oldest first, as geth does.
func (l *headLog) stepBack(block func(number uint64) *Block, latest uint64) {
	keep := len(l.line)
	for keep > 1 && (l.line[keep-1].NumberU64() > latest || block(l.line[keep-1].NumberU64()) != l.line[keep-1]) {
		keep--
	}
	for _, b := range l.line[keep:] {
		l.changes = append(l.changes, HeadChange{Block: b, Removed: true})
	}
	clear(l.line[keep:])
	l.line = l.line[:keep]
}

// followHeads records each move of the heads for subscribers.
func (n *Node) followHeads(ctx context.Context) error {
	last := n.builder.Heads()
	n.moveHeads(last)
	for {
		err := n.builder.Await(ctx, func(h canonical.Heads) (moved bool) {
			moved, last = h != last, h
			return moved
		})
		if err != nil {
			return err
		}
		n.moveHeads(last)
	}
}

func (n *Node) moveHeads(h canonical.Heads) {
	n.headLog.move(n.BlockByNumber, h.Latest.Number, h.Finalized.Number)
}

// HeadCursor returns a cursor behind the last change.
func (n *Node) HeadCursor() uint64 {
	l := n.headLog
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first + uint64(len(l.changes))
}

// HeadChanges returns at most 1024 changes after a cursor, the cursor behind
// them, and a channel that is closed when there are more. The error wraps
// [ErrMissed] if the cursor is too old.
func (n *Node) HeadChanges(cursor uint64) (changes []HeadChange, next uint64, more <-chan struct{}, err error) {
	const most = 1024
	l := n.headLog
	l.mu.Lock()
	defer l.mu.Unlock()
	if end := l.first + uint64(len(l.changes)); cursor < l.first || cursor > end {
		return nil, 0, nil, fmt.Errorf("%w: want changes from %d on, have %d to %d", ErrMissed, cursor, l.first, end)
	}
	changes = l.changes[cursor-l.first:]
	if len(changes) > most {
		done := make(chan struct{})
		close(done)
		return append([]HeadChange(nil), changes[:most]...), cursor + most, done, nil
	}
	return append([]HeadChange(nil), changes...), cursor + uint64(len(changes)), l.moved, nil
}
