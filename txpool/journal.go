package txpool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Journal keeps records; package submit/journal has one in a file.
type Journal interface {
	// Append writes records down, in order. When it returns nil they are safe. It is called by one goroutine at a time.
	Append(records ...[]byte) error
}

// A record begins with a byte that says what it is.
const (
	recordAdded     = 'A' // flags, time of admission (8 bytes, Unix nanoseconds), the transaction's binary encoding
	recordLeft      = 'L' // its hash
	recordOpened    = 'O' // a lease's number (8 bytes), its expiry (8 bytes, Unix nanoseconds), its transactions' hashes
	recordReturned  = 'B' // a lease's number, the hash of a transaction that left it
	recordCommitted = 'C' // a lease's number
	recordReleased  = 'R' // a lease's number

	flagPrivate = 1

	numberSize = 8
)

// errRecord: a record that nobody wrote.
var errRecord = errors.New("txpool: not a record of the pool's journal")

// writeEvents writes down what happened.
func writeEvents(j Journal, events []Event) error {
	var records [][]byte
	for i := range events {
		record, err := events[i].record()
		if err != nil {
			return err
		}
		if record != nil {
			records = append(records, record)
		}
	}
	if len(records) == 0 {
		return nil
	}
	return j.Append(records...)
}

// record returns what is to be written of an event, or nil.
func (e *Event) record() ([]byte, error) {
	switch {
	case e.Admitted:
		return addedRecord(e.Tx, e.Private, e.at)
	case e.Kind == Replaced || e.Kind == Dropped || e.Kind == Included:
		return leftRecord(e.Tx.Hash()), nil
	case e.Kind == leaseOpened:
		return e.lease.openedRecord(), nil
	case e.Kind == leaseReturned:
		return append(number(recordReturned, e.lease.id), e.Tx.Hash().Bytes()...), nil
	case e.Kind == leaseCommitted:
		return number(recordCommitted, e.lease.id), nil
	case e.Kind == leaseReleased:
		return number(recordReleased, e.lease.id), nil
	}
	return nil, nil
}

func number(kind byte, n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{kind}, n) }

func leftRecord(hash common.Hash) []byte { return append([]byte{recordLeft}, hash[:]...) }

func addedRecord(tx *types.Transaction, private bool, at int64) ([]byte, error) {
	raw, err := tx.MarshalBinary()
	if err != nil {
		return nil, err
	}
	var flags byte
	if private {
		flags = flagPrivate
	}
	record := binary.BigEndian.AppendUint64([]byte{recordAdded, flags}, uint64(at))
	return append(record, raw...), nil
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
	// Refused are transactions that the pool does not take any more, such as those that were included meanwhile.
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
// commits those whose bundles were enqueued, and releases the others. It is called once, before anything else. replay calls
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
	p.core.listening = false // it is written down already
	p.mu.Unlock()
	p.admitAll(batch)
	restored := Restored{Poisoned: h.poisoned}
	p.lock()
	for _, l := range h.leases {
		p.lastID = max(p.lastID, l.id)
		if p.reopen(l) {
			restored.Leases++
		}
	}
	p.mu.Unlock()
	p.listen()
	return restored, p.forget(&restored, batch, h.broken)
}

// reopen opens a lease again with those of its transactions that can run.
func (p *Pool) reopen(old *pastLease) bool {
	l := &Lease{pool: p, id: old.id, expires: time.Unix(0, old.expires)}
	for _, hash := range old.hashes {
		if e := p.core.all.get(hash); e != nil && !old.returned[hash] && p.core.lendable(e) {
			p.core.lend(e, l)
			l.txs = append(l.txs, e)
		}
	}
	if len(l.txs) > 0 {
		p.leases[l.id] = l
	}
	return len(l.txs) > 0
}

// forget counts, and writes down what is not to be tried again.
func (p *Pool) forget(restored *Restored, batch []candidate, broken []common.Hash) error {
	var records [][]byte
	for _, hash := range broken {
		records = append(records, leftRecord(hash))
	}
	for i := range batch {
		c := &batch[i]
		if c.err == nil {
			restored.Transactions++
			continue
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
	for _, a := range p.core.list {
		entries = append(entries, a.txs...)
	}
	p.mu.Unlock()
	sortByArrival(entries)
	for rest := entries; len(rest) > 0; {
		now := rest[:min(slice, len(rest))]
		rest = rest[len(now):]
		var records [][]byte
		for _, e := range now {
			record, err := addedRecord(e.tx, e.private, e.at)
			if err != nil {
				return journalError(err)
			}
			records = append(records, record)
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
