package txpool

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Journal keeps records; package submit/journal has one in a file.
type Journal interface {
	// Append writes records down, in order. When it returns nil they are safe. After an error they are offered again, before what comes next;
	// so some may be written twice, which does no harm. It is called by one goroutine at a time.
	Append(records ...[]byte) error
}

// A record begins with a byte that says what it is.
const (
	recordAdded     = 'A' // flags, time of admission (8 bytes, Unix nanoseconds), the transaction's binary encoding
	recordLeft      = 'L' // its hash
	recordIncluded  = 'I' // its hash, sender, nonce (8 bytes), cost (32 bytes), and authorities, each with its nonce
	recordFreed     = 'F' // a sender, the nonce (8 bytes) from which on its included ones were reverted
	recordPrices    = 'P' // base fee, floor and its average (8 bytes each), in wei per gas
	recordOpened    = 'O' // a lease's number (8 bytes), its expiry (8 bytes, Unix nanoseconds), its transactions' hashes
	recordReturned  = 'B' // a lease's number, the hash of a transaction that left it
	recordCommitted = 'C' // a lease's number
	recordReleased  = 'R' // a lease's number

	flagPrivate = 1

	numberSize = 8
)

// errRecord: a record that nobody wrote.
var errRecord = errors.New("txpool: not a record of the pool's journal")

// records appends what is to be written of an event.
func (e *Event) records(to [][]byte) [][]byte {
	switch {
	case e.known:
		return to
	case e.Admitted:
		return append(to, e.entry.addedRecord())
	case e.Kind == Included:
		return append(to, includedRecord(e.Tx.Hash(), e.Sender, &spending{e.entry.nonce, e.entry.cost, e.entry}))
	case e.Kind == Replaced || e.Kind == Dropped:
		return append(to, leftRecord(e.Tx.Hash()))
	case e.Kind == leaseOpened:
		return append(to, e.lease.openedRecord())
	case e.Kind == leaseReturned:
		return append(to, append(number(recordReturned, e.lease.id), e.Tx.Hash().Bytes()...))
	case e.Kind == leaseCommitted:
		return append(to, number(recordCommitted, e.lease.id))
	case e.Kind == leaseReleased:
		return append(to, number(recordReleased, e.lease.id))
	case e.Kind == pricesMoved:
		return append(to, e.fees.record())
	case e.Kind == nonceFreed:
		return append(to, binary.BigEndian.AppendUint64(append([]byte{recordFreed}, e.Sender[:]...), e.nonce))
	}
	return to
}

func number(kind byte, n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{kind}, n) }

func leftRecord(hash common.Hash) []byte { return append([]byte{recordLeft}, hash[:]...) }

func (e *entry) addedRecord() []byte {
	raw, _ := e.tx.MarshalBinary() // what was admitted can be encoded
	var flags byte
	if e.private {
		flags = flagPrivate
	}
	record := binary.BigEndian.AppendUint64([]byte{recordAdded, flags}, uint64(e.at))
	return append(record, raw...)
}

func (p prices) record() []byte {
	record := binary.BigEndian.AppendUint64([]byte{recordPrices}, p.base)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(record, p.floor), p.average)
}

func includedRecord(hash common.Hash, sender common.Address, s *spending) []byte {
	record := append([]byte{recordIncluded}, hash[:]...)
	record = append(record, sender[:]...)
	record = binary.BigEndian.AppendUint64(record, s.nonce)
	cost := s.cost.Bytes32()
	record = append(record, cost[:]...)
	if s.carrier != nil && s.carrier.rare != nil {
		for _, auth := range s.carrier.rare.authorities {
			record = binary.BigEndian.AppendUint64(append(record, auth.address[:]...), auth.nonce)
		}
	}
	return record
}

// openedRecord is written when the lease's transactions are settled; they never become more.
func (l *Lease) openedRecord() []byte {
	record := binary.BigEndian.AppendUint64(number(recordOpened, l.id), uint64(l.expires.UnixNano()))
	for _, hash := range l.opened {
		record = append(record, hash[:]...)
	}
	return record
}

func journalError(err error) error { return fmt.Errorf("%w: %w", ErrJournal, err) }

// Restored says what Restore found.
type Restored struct {
	// Transactions and Leases count what is in the pool again.
	Transactions, Leases int
	// Refused are transactions that the pool does not take any more, such as those that were included meanwhile, or that found no room.
	Refused []Refusal
	// Poisoned are records that could not be read, or that made a check panic. They are not tried again.
	Poisoned []Poison
}

// Poison is a record that was put aside.
type Poison struct {
	Record []byte
	Err    error
}

// Restore fills an empty pool from its journal, by the same rules as ever, and opens its leases again under their numbers: the host
// commits those whose bundles were enqueued, and releases the others. Base fee and floor are what they were; quarantine, tombstones and the
// counts of replacements are forgotten. Observers are told of what is there again as if it had come now. It is called once, before anything else. replay calls
// its argument with each record in order, as submit/journal's Replay does; Restore returns its error. A record that cannot
// be read, or makes a check panic, is put aside and stops nothing.
func (p *Pool) Restore(replay func(func(record []byte) error) error) (Restored, error) {
	var h history
	if err := replay(h.read); err != nil {
		return Restored{}, err
	}
	batch, origin := h.candidates()
	p.examineRestored(batch, origin, &h)
	p.lock()
	p.core.restoring = true
	h.prices.apply(&p.core.fees)
	p.mu.Unlock()
	p.recommit(&h)
	p.admitAll(batch)
	restored := Restored{Poisoned: h.poisoned}
	p.lock()
	p.lastID = max(p.lastID, h.lastLease)
	restored.Leases = p.reopen(h.leases)
	p.core.restoring = false
	p.mu.Unlock()
	_ = p.writeDown() // nothing of it is to be written, but all is to be told
	p.tellAll()
	return restored, p.forget(&restored, batch, h.broken)
}

// apply takes over the prices of before, if any were written down, as far as they are in range now.
func (p *prices) apply(f *fees) {
	if *p == (prices{}) {
		return
	}
	f.base = p.base
	f.floor = min(max(p.floor, f.cfg.MinGasPrice), f.cfg.MaxFloor)
	f.average = p.average
}

// recommit takes over what was committed and the host's state does not show yet.
func (p *Pool) recommit(h *history) {
	p.finishCommits(h)
	now := p.cfg.Now().UnixNano()
	for address, spent := range h.spent {
		known, err := p.account(address)
		if err != nil {
			p.cfg.Logger.Warn("txpool: account not read, it will be with its next transaction", "err", err)
			known.Nonce = slices.MinFunc(spent, func(a, b spending) int { return cmp.Compare(a.nonce, b.nonce) }).nonce
		}
		p.lock()
		p.core.recommit(address, known, spent, err != nil, now)
		p.mu.Unlock()
	}
}

// finishCommits is for what a lease held that was being committed when the process died.
func (p *Pool) finishCommits(h *history) {
	for _, past := range h.committing {
		if p.survives(past.tx) != nil {
			continue
		}
		e, err := p.cfg.inspect(past.tx)
		if err != nil {
			continue // the rules are others now
		}
		if from, err := p.cfg.authenticate(p.signer, e); err == nil {
			s := spending{nonce: e.nonce, cost: e.cost}
			if e.tx.Type() == types.SetCodeTxType {
				e.rare = &rare{authorities: p.cfg.authorities(e.tx)}
				s.carrier = e
			}
			h.spend(from, s)
		}
	}
}

// reopen opens leases again with those of their transactions that can run, and returns how many. Each sender's are lent by nonce, whatever the
// order of the leases.
func (p *Pool) reopen(old []*pastLease) (opened int) {
	type loan struct {
		entry *entry
		lease *Lease
	}
	var loans []loan
	leases := make([]*Lease, len(old))
	for i, past := range old {
		leases[i] = &Lease{pool: p, id: past.id, expires: time.Unix(0, past.expires), sealed: true}
		for _, hash := range past.hashes {
			if e := p.core.all.get(hash); e != nil && !past.returned[hash] {
				loans = append(loans, loan{e, leases[i]})
				leases[i].txs = append(leases[i].txs, e)
			}
		}
	}
	slices.SortStableFunc(loans, func(a, b loan) int { return cmp.Compare(a.entry.nonce, b.entry.nonce) })
	for _, l := range loans {
		if p.core.lendable(l.entry) {
			p.core.lend(l.entry, l.lease)
		}
	}
	p.core.arrangeTouched()
	for _, l := range leases {
		l.txs = slices.DeleteFunc(l.txs, func(e *entry) bool { return e.lease != l })
		if len(l.txs) > 0 {
			p.leases[l.id] = l
			opened++
		}
	}
	return opened
}

// forget counts, and writes down what is not to be tried again.
func (p *Pool) forget(restored *Restored, batch []candidate, broken []common.Hash) error {
	var records [][]byte
	for _, hash := range broken {
		records = append(records, leftRecord(hash))
	}
	for i := range batch {
		c := &batch[i]
		if c.err == nil && !c.entry.gone {
			restored.Transactions++
			continue
		}
		if c.err == nil {
			c.err = ErrPoolFull // one that came after it was better
		}
		if c.tx != nil {
			restored.Refused = append(restored.Refused, Refusal{c.tx, c.err})
			if !errors.Is(c.err, ErrState) { // that says nothing about the transaction: the next restart tries again
				records = append(records, leftRecord(c.tx.Hash()))
			}
		}
	}
	for _, poison := range restored.Poisoned {
		p.cfg.Logger.Error("txpool: record put aside", "err", poison.Err, "bytes", len(poison.Record))
	}
	if p.cfg.Journal == nil || len(records) == 0 {
		return nil
	}
	if err := p.cfg.Journal.Append(records...); err != nil {
		return journalError(err)
	}
	return nil
}

// Dump writes a journal for what is in the pool, so that a host can begin a new file and delete the old. Nothing else may use the pool
// meanwhile: call it after Restore.
func (p *Pool) Dump(j Journal) error {
	p.lock()
	entries := make([]*entry, 0, p.core.all.len())
	lastID, fees := p.lastID, p.core.fees.prices()
	var included [][]byte
	for _, a := range p.core.list {
		for _, e := range a.txs {
			entries = append(entries, e.entry)
		}
		for _, s := range a.committed.all() {
			included = append(included, includedRecord(common.Hash{}, a.address, &s))
		}
	}
	p.mu.Unlock()
	// The greatest number of a lease, so that it is not used again, and the prices come first.
	if err := j.Append(append([][]byte{number(recordReleased, lastID), fees.record()}, included...)...); err != nil {
		return journalError(err)
	}
	sortByArrival(entries)
	for rest := entries; len(rest) > 0; {
		now := rest[:min(slice, len(rest))]
		rest = rest[len(now):]
		records := make([][]byte, len(now))
		for i, e := range now {
			records[i] = e.addedRecord()
		}
		if err := j.Append(records...); err != nil {
			return journalError(err)
		}
	}
	for _, l := range p.Leases() {
		l.opened = hashesOf(l.Transactions())
		if err := j.Append(l.openedRecord()); err != nil {
			return journalError(err)
		}
	}
	return nil
}
