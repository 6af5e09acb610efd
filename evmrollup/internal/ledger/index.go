package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// The index lets a search for logs find the blocks that may have a match. It has a key
// for each address or topic and each block with a log that has this address or topic. A
// search reads little more than the keys of its rarest condition, because it skips
// ahead in the others. For example, the transfers to one account are rare among the
// transfers of a token, while the token may have a key for every block.

// query contains the conditions for a block to contain a matching log: one for the
// addresses, and one for each position with topics.
type query []condition

// condition is one part of a search for logs: a list of addresses, or of topics at one
// position. A block meets the condition if it has a log with at least one of them,
// according to the index.
type condition []*cursor

// query converts the arguments of eth_getLogs to conditions that a block must meet.
func (d *database) query(to uint64, addresses []common.Address, topics [][]common.Hash) (q query) {
	var of condition
	for _, a := range addresses {
		of = append(of, &cursor{disk: d, term: key(keyAddress, a[:]), to: to})
	}
	all := []condition{of}
	for _, position := range topics {
		var with condition
		for _, topic := range position {
			with = append(with, &cursor{disk: d, term: key(keyTopic, topic[:]), to: to})
		}
		all = append(all, with)
	}
	// A list without elements matches all logs, so it is no condition.
	return slices.DeleteFunc(all, func(c condition) bool { return len(c) == 0 })
}

// seek returns the first block, from the given number on, that meets all
// conditions.
func (q query) seek(from uint64) (number uint64, found bool) {
	for agree := 0; agree < len(q); {
		for _, c := range q {
			number, found = c.seek(from)
			switch {
			case !found:
				return 0, false
			case number > from:
				from, agree = number, 0
			}
			agree++
		}
	}
	return from, true
}

// seek returns the first block, from the given number on, that meets the condition.
func (c condition) seek(from uint64) (least uint64, found bool) {
	for _, one := range c {
		if number, some := one.seek(from); some && (!found || number < least) {
			least, found = number, true
		}
	}
	return least, found
}

// cursor reads the numbers of the blocks that the index lists for one address or topic.
// It reads ever more numbers at a time as long as the caller uses them in sequence, and
// begins with few after a jump.
type cursor struct {
	disk  *database
	term  []byte
	to    uint64
	ahead []uint64 // read, and not before the last seek
	last  uint64   // read
	size  int      // of the last read
	ended bool     // no more can be read
}

// leastKeys and mostKeys limit the keys that a cursor reads at a time.
const leastKeys, mostKeys = 8, 4096

// seek returns the first block, from a number on, that the index lists for the cursor's
// term.
func (c *cursor) seek(from uint64) (number uint64, found bool) {
	// from does not decrease between calls.
	passed, _ := slices.BinarySearch(c.ahead, from)
	if c.ahead = c.ahead[passed:]; len(c.ahead) == 0 && !c.ended {
		c.read(from)
	}
	if len(c.ahead) == 0 {
		return 0, false
	}
	return c.ahead[0], true
}

// errEnough ends a scan when enough keys were read. Callers do not get it.
var errEnough = errors.New("ledger: enough keys")

// read reads the next block numbers from the index.
func (c *cursor) read(from uint64) {
	if c.size = min(2*c.size, mostKeys); from != c.last+1 || c.size == 0 {
		c.size = leastKeys
	}
	c.ahead = make([]uint64, 0, c.size)
	err := c.disk.disk.Scan(slices.Concat(c.term, numbered(from)), slices.Concat(c.term, numbered(c.to+1)), func(key []byte) error {
		c.last = binary.BigEndian.Uint64(key[len(c.term):])
		if c.ahead = append(c.ahead, c.last); len(c.ahead) == c.size {
			return errEnough
		}
		return nil
	})
	if c.ended = err == nil; err != nil && !errors.Is(err, errEnough) {
		c.disk.check(fmt.Errorf("%w: %w", ErrDamaged, err))
	}
}
