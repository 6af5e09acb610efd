package txpool

// secure records admitted transactions in the journal. If it refuses newcomers, they
// are withdrawn. For those that come back, the next Add returns the error.
func (p *Pool) secure(batch []candidate) {
	if err := p.writeDown(); err != nil && batch[0].origin == nil {
		p.withdraw(batch, journalError(err))
	}
}

// withdraw removes newcomers, and takes back the transactions that they displaced.
func (p *Pool) withdraw(batch []candidate, reason error) {
	seen := make(map[*entry]bool) // the newcomers, and then those that they displaced
	for i := range batch {
		if batch[i].err == nil {
			seen[batch[i].entry] = true
		}
	}
	var all []*entry
	for i := range batch {
		for _, e := range batch[i].displaced {
			if !seen[e] {
				seen[e] = true
				all = append(all, e)
			}
		}
	}
	var back []*past
	_ = p.step(func(c *core) error {
		// The journal may have a record after which they are gone. It gets their
		// admission first, because it may end here with the newcomers.
		for _, e := range all {
			c.note(e.past().addedRecord())
		}
		for i := len(batch) - 1; i >= 0; i-- {
			t := &batch[i]
			if t.err != nil {
				continue
			}
			t.err = reason
			if !t.entry.gone && t.entry.lease == nil {
				c.apply(dropping(t.entry, ErrJournal))
			}
		}
		for _, e := range all {
			if e.gone {
				back = append(back, e.past())
			}
		}
		return nil
	})
	returned := p.examineBack(back)
	p.admitAll(returned)
	p.setAside(returned)
	_ = p.step(func(c *core) error {
		for _, e := range c.relaxAll(returned) {
			c.note(e.past().addedRecord())
		}
		return nil
	})
}
