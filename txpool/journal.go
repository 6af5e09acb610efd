package txpool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Journal stores the records of a pool. Package submit/journal has
// implementations.
type Journal interface {
	// Append writes records in order. They must be durable when it returns nil.
	// If it returns an error, or the process ends before it returns, it may have
	// kept any prefix of the records, or all of them, but no part of a record.
	// After an error, the pool offers the same records again, before later
	// ones. A record may therefore be stored twice, which is harmless. The pool
	// does not call Append concurrently.
	Append(records ...[]byte) error
}

// records appends the records of changes in the order in which the journal must
// get them. The record of an admission comes before those of the transactions that
// the newcomer displaces, because a crash may keep any prefix, and a prefix with
// only the departures would lose transactions for nothing. If a prefix has the
// admission only, Restore finds two transactions with one nonce and takes the
// older one: the newcomer was not acknowledged.
func records(to [][]byte, changes []change) [][]byte {
	var late [][]byte
	for i := range changes {
		switch c := &changes[i]; {
		case c.record == nil:
		case c.displaced:
			late = append(late, c.record)
		default:
			to = append(to, c.record)
		}
		if changes[i].event.Admitted {
			to, late = append(to, late...), nil
		}
	}
	return append(to, late...)
}

// addedRecord returns the record of an admission.
func (o *past) addedRecord() []byte {
	return encode(recordAdded, o.private, o.exempt, o.held, uint64(o.at), o.tx)
}

// past returns what must be known of an entry to admit it again.
func (e *entry) past() *past { return &past{tx: e.tx, at: e.at, private: e.private, exempt: e.exempt} }

// inclusion returns what the journal gets of an entry in a block.
func (e *entry) inclusion() inclusion {
	return inclusion{e.hash(), e.account.address, spending{e.nonce, e.cost, e.authorities}}
}

// openedRecord returns the record of a lease. The caller holds the pool's lock.
func (l *Lease) openedRecord() []byte {
	var hashes []common.Hash
	for e := range l.members {
		hashes = append(hashes, e.hash())
	}
	return encode(recordOpened, l.id, hashes)
}

// committingRecord returns the record of a commit that begins. It is one record,
// so that no part of it can be missing.
func (l *Lease) committingRecord() []byte {
	var all []inclusion
	for e := range l.members {
		all = append(all, e.inclusion())
	}
	return encode(recordCommitting, l.id, all)
}

func journalError(err error) error { return fmt.Errorf("%w: %w", ErrJournal, err) }

// Restored is the result of Restore.
type Restored struct {
	// Transactions and Leases are the numbers of restored transactions and
	// leases.
	Transactions, Leases int
	// Displaced are transactions that are not in the pool again. Those whose
	// nonce was used up have left it. The others are held aside and stay in the
	// journal.
	Displaced []Displaced
	// Poisoned are records that could not be read, and records of transactions
	// that made a check panic. The latter are held aside. All of them stay in
	// the journal, and Rotate copies them.
	Poisoned []Poison
}

// Poison is a journal Record that could not be used, with the reason Err.
type Poison struct {
	Record []byte
	Err    error
}

// Restore fills an empty pool from its journal and opens its leases again under
// their numbers, for Config.LeaseLifetime from now on. The host then commits the
// leases whose bundles were enqueued, and releases the others. The base fee and
// the floor are restored; quarantine, tombstones and the counts of replacements
// are not. Observers receive an event for each restored transaction.
//
// Restore loses no acknowledged transaction. It takes back transactions above
// the caps, even if the caps are lower than before; the excess is exempt. It
// refuses only transactions whose nonce is used up. Transactions that cannot be
// admitted now are held aside: see StatusHeld. The result lists both.
//
// Restore must be called before all other calls. replay calls its argument with each
// record in order, as the method Replay in submit/journal does. A record that cannot
// be read is skipped and listed in Restored.Poisoned.
//
// The error is that of replay. Or it is the reason why a transaction of an open lease
// cannot be admitted now, for example an error of State: the transaction may be in a
// bundle, so that no other bundle may get it. The host then creates another pool. An
// error that wraps ErrJournal comes with a pool that can be used.
func (p *Pool) Restore(replay func(func(record []byte) error) error) (Restored, error) {
	var h history
	if err := replay(h.read); err != nil {
		return Restored{}, err
	}
	h.lend()
	batch := p.examineBack(h.origins())
	restored := Restored{Poisoned: poisoned(&h, batch)}
	p.beginRestore(&h)
	p.recommit(&h)
	p.admitAll(batch)
	for i := range batch {
		if t := &batch[i]; t.origin.lent && t.err != nil && !final(t.err) {
			return Restored{}, fmt.Errorf("txpool: restore %s, which a lease has: %w", t.tx.Hash(), t.err)
		}
	}
	restored.Displaced, _ = p.setAside(batch)
	for i := range batch {
		if batch[i].err == nil {
			restored.Transactions++
		}
	}
	restored.Leases = p.endRestore(&h, batch)
	for _, poison := range restored.Poisoned {
		p.cfg.Logger.Error("txpool: journal record skipped", "err", poison.Err, "bytes", len(poison.Record))
	}
	defer p.deliverAll()
	if err := p.writeDown(); err != nil { // only departures are new
		return restored, journalError(err)
	}
	return restored, nil
}

// poisoned returns the records that could not be read, and those of
// transactions that made a check panic.
func poisoned(h *history, batch []candidate) []Poison {
	all := h.poisoned
	for i := range batch {
		if t := &batch[i]; errors.Is(t.err, errPanic) {
			all = append(all, Poison{t.origin.record, t.err})
		}
	}
	return all
}

// beginRestore restores the data that belongs to no transaction.
func (p *Pool) beginRestore(h *history) {
	now := p.clock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.core.restoring, p.core.keeping = true, true
	if h.prices != (prices{}) {
		h.prices.floor = min(max(h.prices.floor, p.cfg.MinGasPrice), p.cfg.maxFloor())
		p.core.fees.prices = h.prices
	}
	for _, d := range h.departures.all(now) {
		p.core.departures.put(d.Hash, d, d.At.UnixNano())
	}
	for _, poison := range h.poisoned {
		p.poisoned = append(p.poisoned, poison.Record)
	}
}

// endRestore opens the leases again and returns how many.
func (p *Pool) endRestore(h *history, batch []candidate) (opened int) {
	p.enter()
	defer p.mu.Unlock()
	p.lastID = max(p.lastID, h.lastLease)
	opened = p.reopen(h.leases())
	p.core.relaxAll(batch)
	p.core.restoring, p.core.keeping = false, false
	return opened
}

// recommit restores committed transactions that the host's state does not show
// yet.
func (p *Pool) recommit(h *history) {
	now := p.clock()
	for address, spent := range h.spent {
		known, err := p.account(address)
		if err != nil {
			p.cfg.Logger.Warn("txpool: cannot read an account, retrying with its next transaction", "err", err)
			known.Nonce = slices.MinFunc(spent, func(a, b spending) int { return cmp.Compare(a.Nonce, b.Nonce) }).Nonce
		}
		p.mu.Lock()
		p.core.recommit(address, known, spent, err != nil, now)
		p.mu.Unlock()
	}
}

// reopen opens leases again with those of their transactions that are in the
// pool, and returns the number of leases. The transactions are in bundles of
// the host, even if they could not run now. It lends those of each sender in
// nonce order, regardless of the order of the leases.
func (p *Pool) reopen(old []*pastLease) (opened int) {
	type loan struct {
		entry *entry
		lease *Lease
	}
	var loans []loan
	leases := make([]*Lease, len(old))
	for i, past := range old {
		leases[i] = &Lease{pool: p, id: past.id, sealed: true}
		leases[i].renew(p.core.now) // the host could not while the process was down
		for _, hash := range past.hashes {
			if e := p.core.all[hash]; e != nil && !past.returned[hash] {
				loans = append(loans, loan{e, leases[i]})
				leases[i].txs = append(leases[i].txs, e)
			}
		}
	}
	slices.SortStableFunc(loans, func(a, b loan) int { return cmp.Compare(a.entry.nonce, b.entry.nonce) })
	for _, l := range loans {
		if l.entry.lease == nil {
			p.core.lend(l.entry, l.lease)
			p.core.enlist(l.entry, true) // it was not ready if the balance fell
		}
	}
	for _, l := range loans {
		p.core.arrange(l.entry.account, 0, len(l.entry.account.txs))
	}
	for _, l := range leases {
		l.txs = slices.DeleteFunc(l.txs, func(e *entry) bool { return e.lease != l })
		if len(l.txs) > 0 {
			p.leases[l.id] = l
			opened++
		}
	}
	return opened
}

// Rotate writes the content of the pool to a new journal and continues with it. The
// host can delete the old journal when Rotate has returned nil. The new journal gets
// the content with one Append, so that one which replaces all that it has needs no
// other file. Calls that change the pool wait meanwhile, and readers do not. After an
// error, which wraps ErrJournal, the pool continues with the old journal. If
// Config.Journal is nil, Rotate only writes a copy.
func (p *Pool) Rotate(next Journal) error {
	p.out.journaling.Lock()
	defer p.out.journaling.Unlock()
	if err := next.Append(p.Records()...); err != nil {
		return journalError(err)
	}
	if p.cfg.Journal != nil {
		p.out.journal, p.out.unwritten = next, nil
		p.out.failing.Store(false)
	}
	return nil
}

// Records returns the records of the pool's content at one moment, for a host that
// keeps those of Config.Journal in its own log and shortens it: transactions, leases,
// transactions held aside, departures, and records that Restore could not read. They
// replace all that were appended before. Restore accepts records of earlier changes
// after them. The journal's Append may call it.
func (p *Pool) Records() [][]byte {
	p.mu.Lock()
	records := p.generalRecords()
	var entries []*entry
	for _, a := range p.core.list {
		for _, s := range a.spent {
			records = append(records, encode(recordIncluded, inclusion{Sender: a.address, Spending: s}))
		}
		for _, e := range a.txs {
			entries = append(entries, e.entry)
		}
	}
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	admitted := make([]*past, len(entries))
	for i, e := range entries {
		admitted[i] = e.past()
	}
	var leases [][]byte
	for _, l := range p.leases {
		switch {
		case l.bundled:
			leases = append(leases, l.committingRecord())
		case l.sealed:
			leases = append(leases, l.openedRecord())
		}
	}
	p.mu.Unlock()
	for _, o := range admitted { // without the lock, because it takes long
		records = append(records, o.addedRecord())
	}
	return append(records, leases...)
}

// generalRecords returns the records that belong to no sender: first the highest
// number of a lease, so that it is not used again.
func (p *Pool) generalRecords() [][]byte {
	records := [][]byte{encode(recordReleased, p.lastID), p.core.fees.record()}
	for _, d := range p.core.departures.all(p.clock()) {
		records = append(records, d.record())
	}
	for _, o := range p.core.aside.inOrder() {
		records = append(records, o.addedRecord())
	}
	return append(records, p.poisoned...)
}
