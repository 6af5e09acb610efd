package txpool

import "time"

// graveyard remembers for a limited time which transactions must not come back.
// Its size is bounded; the oldest entry is forgotten first. Entries are keyed
// by the first eight bytes of the hash. A collision only delays the colliding
// transaction until the entry expires.
type graveyard struct {
	until map[uint64]int64 // Unix nanoseconds
	ring  []uint64         // same keys by age, from next
	next  int
}

const maxGraves = 16 * 1024

func newGraveyard() graveyard { return graveyard{until: make(map[uint64]int64)} }

// bury adds a transaction by the prefix of its hash.
func (g *graveyard) bury(at uint64, now int64, duration time.Duration) {
	if duration <= 0 {
		return
	}
	if _, there := g.until[at]; !there {
		if len(g.ring) < maxGraves {
			g.ring = append(g.ring, at)
		} else {
			delete(g.until, g.ring[g.next])
			g.ring[g.next] = at
			g.next = (g.next + 1) % maxGraves
		}
	}
	g.until[at] = now + int64(duration)
}

// find returns for how long a transaction must not come back, or 0.
func (g *graveyard) find(at uint64, now int64) time.Duration {
	if len(g.until) == 0 {
		return 0
	}
	return time.Duration(max(g.until[at]-now, 0))
}
