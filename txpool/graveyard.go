package txpool

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// graveyard remembers for a limited time which transactions must not come back.
// Its size is bounded; the oldest entry is forgotten first.
type graveyard struct {
	until map[common.Hash]int64 // Unix nanoseconds
	ring  []common.Hash         // same keys by age, from next
	next  int
}

const maxGraves = 16 * 1024

func newGraveyard() graveyard { return graveyard{until: make(map[common.Hash]int64)} }

// bury adds a transaction.
func (g *graveyard) bury(hash common.Hash, now int64, duration time.Duration) {
	if duration <= 0 {
		return
	}
	if _, there := g.until[hash]; !there {
		if len(g.ring) < maxGraves {
			g.ring = append(g.ring, hash)
		} else {
			delete(g.until, g.ring[g.next])
			g.ring[g.next] = hash
			g.next = (g.next + 1) % maxGraves
		}
	}
	g.until[hash] = now + int64(duration)
}

// find returns for how long a transaction must not come back, or 0.
func (g *graveyard) find(hash common.Hash, now int64) time.Duration {
	if len(g.until) == 0 {
		return 0
	}
	return time.Duration(max(g.until[hash]-now, 0))
}
