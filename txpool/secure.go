package txpool

// secure records admitted transactions in the journal. If it fails, newcomers
// are removed, and the transactions that they displaced come back.
func (p *Pool) secure(batch []candidate) {
	failed := p.writeDown()
	if p.cfg.Journal == nil || failed == nil || batch[0].origin != nil {
		return // the next Add returns the error
	}
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
			t.err = journalError(failed)
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
