package txpool

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
)

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

// accountCache holds accounts without transactions in the pool, so that a flood
// of refused transactions does not read the host's state each time.
type accountCache struct {
	accounts lru.BasicLRU[common.Address, Account]
}

func newAccountCache(size int) accountCache {
	return accountCache{lru.NewBasicLRU[common.Address, Account](size)}
}

func (c *accountCache) put(address common.Address, account Account) {
	c.accounts.Add(address, account)
}

func (c *accountCache) get(address common.Address) (Account, bool) { return c.accounts.Get(address) }

func (c *accountCache) has(address common.Address) bool {
	return c.accounts.Len() > 0 && c.accounts.Contains(address)
}

func (c *accountCache) forget(address common.Address) { c.accounts.Remove(address) }

func (c *accountCache) clear() { c.accounts.Purge() }
