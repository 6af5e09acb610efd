package node

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/txpool"
)

// ErrMissed: the changes that were asked for are so old that they are forgotten.
var ErrMissed = errors.New("node: changes are forgotten")

// HeadChange is one step of the latest block. JAM can reorganize: what it had accumulated is then not accumulated any more, and latest steps back over
// the block. Mostly the same block comes again; it may be another one, where the queue gave it up.
type HeadChange struct {
	Block *Block
	// Removed says that latest stepped back over the block.
	Removed bool
}

// keptChanges is how many steps are remembered: enough for five minutes, which is how long a filter may sleep, of 400 blocks per second.
const keptChanges = 1 << 17

// headLog remembers how the latest block moved. Readers have cursors and come for more in their own time, so none can hold up the node or another.
// It is safe for concurrent use; move is the node's alone.
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

// move notes that latest and finalized are at these numbers now, on the blocks of a ledger.
func (l *headLog) move(blocks *ledger, latest, finalized uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.changes)
	l.stepBack(blocks, latest)
	for next := l.top().NumberU64() + 1; next <= latest; next++ {
		b := blocks.byNumber(next)
		if b == nil || b.ParentHash() != l.top().Hash() {
			break // it is being undone, and the next move will say so
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

// stepBack removes what is above latest or not in the ledger any more, and tells of it with the oldest first, as geth does.
func (l *headLog) stepBack(blocks *ledger, latest uint64) {
	keep := len(l.line)
	for keep > 1 && (l.line[keep-1].NumberU64() > latest || blocks.byNumber(l.line[keep-1].NumberU64()) != l.line[keep-1]) {
		keep--
	}
	for _, b := range l.line[keep:] {
		l.changes = append(l.changes, HeadChange{Block: b, Removed: true})
	}
	clear(l.line[keep:])
	l.line = l.line[:keep]
}

// HeadCursor returns a cursor that stands after the last change so far.
func (n *Node) HeadCursor() uint64 {
	l := n.headLog
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first + uint64(len(l.changes))
}

// HeadChanges returns the changes after a cursor, at most 1024 of them, the cursor after them, and a channel that is closed once there are more. The error
// wraps [ErrMissed] where the reader slept for too long.
func (n *Node) HeadChanges(cursor uint64) (changes []HeadChange, next uint64, more <-chan struct{}, err error) {
	const most = 1024
	l := n.headLog
	l.mu.Lock()
	defer l.mu.Unlock()
	if end := l.first + uint64(len(l.changes)); cursor < l.first || cursor > end {
		return nil, 0, nil, fmt.Errorf("%w: want those from %d on, and have %d to %d", ErrMissed, cursor, l.first, end)
	}
	changes = l.changes[cursor-l.first:]
	if len(changes) > most {
		done := make(chan struct{})
		close(done)
		return append([]HeadChange(nil), changes[:most]...), cursor + most, done, nil
	}
	return append([]HeadChange(nil), changes...), cursor + uint64(len(changes)), l.moved, nil
}

// PoolEvents subscribes to what happens in the pool. The caller closes the subscription.
func (n *Node) PoolEvents(buffer int) *txpool.Subscription {
	return n.pool.Subscribe(txpool.SubscribeOptions{Buffer: buffer})
}

// RemovePooled takes a transaction out of the pool, with those of its sender that come after it waiting for another. The error wraps txpool.ErrNotFound, or
// txpool.ErrInBundle where it is too late.
func (n *Node) RemovePooled(hash common.Hash) error { return n.pool.Remove(hash) }
