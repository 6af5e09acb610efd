package statedb

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// codes holds the published code and decides when the store can delete code. The
// keys of the tree do not show which values are code hashes, so each code has
// owners among the roots: first the root whose commit has set the code and, when an
// owner is discarded, the roots that were committed on it. Code without an owner is
// deleted.
//
// Code of a discarded ancestor of the canonical root is kept forever. Otherwise the
// code of the whole history would get a new owner with each block.
type codes struct {
	blobs  sorted[codeBlob]    // always shared, so that views can copy it without a lock
	owners map[common.Hash]int // number of roots that own a code
	kept   map[common.Hash]bool
}

func newCodes() codes {
	return codes{owners: make(map[common.Hash]int), kept: make(map[common.Hash]bool)}
}

// unkept returns the hashes of the given codes, except code that is kept forever.
func (c *codes) unkept(code []codeBlob) (hashes []common.Hash) {
	for _, b := range code {
		// A new root needs this code, so it becomes one of the owners. The code stays as long
		// as it has an owner.
		if !c.kept[b.hash] {
			hashes = append(hashes, b.hash)
		}
	}
	return hashes
}

// unknown returns the given codes that are not published yet.
func (c *codes) unknown(code []codeBlob) []codeBlob {
	return slices.DeleteFunc(slices.Clone(code), func(b codeBlob) bool {
		_, known := c.blobs.get(b)
		return known
	})
}

// moved calls f for each code whose number of owners changes.
func (c *change) moved(roots map[common.Hash]*published, f func(code common.Hash, owners int)) {
	for root, l := range c.links {
		// If the link of a root changes, its old and its new link are both reported. The same
		// code may then be reported with 1 and with -1.
		for _, h := range l.codes {
			f(h, 1)
		}
		if p := roots[root]; p != nil {
			for _, h := range p.codes {
				f(h, -1)
			}
		}
	}
	for _, root := range c.gone {
		for _, h := range roots[root].codes {
			f(h, -1)
		}
	}
}

// dropped returns the code that no root needs after a change, so that the store can delete
// it.
func (c *codes) dropped(ch *change, roots map[common.Hash]*published) (drop []common.Hash) {
	balance := make(map[common.Hash]int)
	ch.moved(roots, func(h common.Hash, n int) { balance[h] += n })
	for h, n := range balance {
		if c.owners[h]+n == 0 && !c.kept[h] && !slices.Contains(ch.keep, h) {
			drop = append(drop, h)
		}
	}
	slices.SortFunc(drop, common.Hash.Cmp)
	return drop
}

// apply updates the published code and its owners.
func (c *codes) apply(ch *change, roots map[common.Hash]*published) {
	// roots are the published roots before the change.
	ch.moved(roots, func(h common.Hash, n int) {
		if c.owners[h] += n; c.owners[h] == 0 {
			delete(c.owners, h)
		}
	})
	for _, h := range ch.keep {
		c.kept[h] = true
	}
	if len(ch.code)+len(ch.drop) == 0 {
		return
	}
	blobs := c.blobs
	for _, b := range ch.code {
		blobs.put(b, blobLess)
	}
	for _, h := range ch.drop {
		blobs.remove(codeBlob{hash: h}, blobLess)
	}
	c.blobs = blobs.copy()
}
