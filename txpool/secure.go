package txpool

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// displaced is a transaction that a newcomer has displaced. Its account may
// belong to another sender by the time that it comes back.
type displaced struct {
	*entry
	from common.Address
}

// displacedBy returns the transactions that a newcomer displaces: those that it
// evicts, with those in line after them, and the one that it replaces.
func (c *core) displacedBy(p plan) (all []displaced) {
	for _, l := range p.leaves {
		a := l.account
		first := c.indexOf(l.entry)
		last := first
		if a != p.account {
			last = max(int(a.line)-1, first)
		}
		for _, e := range a.txs[first : last+1] {
			if e.entry == l.entry || e.lease == nil && !e.keeps() {
				all = append(all, displaced{e.entry, a.address})
			}
		}
	}
	if p.replaces != nil {
		all = append(all, displaced{p.replaces, p.account.address})
	}
	return all
}

// secure records admitted transactions in the journal. If it fails, newcomers
// are removed, and the transactions that they displaced come back.
func (p *Pool) secure(batch []candidate) {
	failed := p.writeDown()
	if p.cfg.Journal == nil || failed == nil || batch[0].back {
		return // the next Add returns the error
	}
	seen := make(map[*entry]bool) // the newcomers, and then those that they displaced
	for i := range batch {
		if batch[i].err == nil {
			seen[batch[i].entry] = true
		}
	}
	var all []displaced
	for i := range batch {
		for _, e := range batch[i].displaced {
			if !seen[e.entry] {
				seen[e.entry] = true
				all = append(all, e)
			}
		}
	}
	_ = p.step(func(c *core) error {
		// The journal may have a record after which they are gone. It gets their
		// admission first, because it may end here with the newcomers.
		for _, e := range all {
			c.note(e.addedRecord())
		}
		for i := len(batch) - 1; i >= 0; i-- {
			t := &batch[i]
			if t.err != nil {
				continue
			}
			t.err = journalError(failed)
			if !t.entry.gone && t.entry.lease == nil {
				c.apply(dropping(t.entry, ErrJournal))
			}
		}
		return nil
	})
	all = slices.DeleteFunc(all, func(e displaced) bool { return !e.gone })
	back := make([]candidate, len(all))
	for i, e := range all {
		back[i] = candidate{tx: e.tx, entry: e.again(), from: e.from, back: true}
	}
	p.admitAll(back)
	p.setAside(back)
	_ = p.step(func(c *core) error {
		for i := range back { // the caps apply to them as before
			if e := back[i].entry; back[i].err == nil && !e.gone && !all[i].exempt {
				c.relax(e)
				c.note(e.addedRecord())
			}
		}
		return nil
	})
}
