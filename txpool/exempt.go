package txpool

// A transaction that comes back was acknowledged: its
// block failed, or the process restarted. It is exempt from the caps of count
// and bytes. It displaces no other transaction and is not displaced. It leaves
// like any other: by inclusion, by a replacement of its sender, by its lifetime,
// or because its nonce is used.
//
// Exempt transactions cannot fill the memory. A newcomer is admitted only while
// all transactions together, including exempt ones and those held aside
// (held.go), but not locked ones, are within the sum of the three caps. The
// pool therefore holds at most that sum and, in addition, the transactions that
// were in a session or in the host's queue at one time.
//
// A transaction that a session postponed was never in a block. It is not exempt.

// maxPassed is the number of transactions that cannot be displaced, for example
// exempt ones, that a newcomer's search for victims skips before it gives up.
const maxPassed = 4096

// exemptEntry makes an entry exempt from the caps. The caller must then arrange
// its chain.
func (c *core) exemptEntry(e *entry) {
	if e.exempt {
		return
	}
	c.count(e, -1)
	e.exempt = true
	e.account.exempt++
	c.count(e, 1)
	c.recordKept(e)
}

// relax makes the caps apply to an entry again, if it fits.
func (c *core) relax(e *entry) {
	a, s := e.account, e.group()
	own := len(a.txs) - int(a.exempt)
	if a.short() || own >= c.cfg.MaxPerSender || !fit(usage{1, uint64(e.memory)}, c.capped(s), c.limits[s], usage{}) {
		return
	}
	c.count(e, -1)
	e.exempt = false
	a.exempt--
	c.count(e, 1)
	c.recount(a)
}
