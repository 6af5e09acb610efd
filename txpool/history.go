package txpool

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// history is the content of a journal.
type history struct {
	added    map[common.Hash]*past
	open     map[uint64]*pastLease
	order    uint64
	poisoned []Poison

	departures recent[Departure]

	lastLease uint64 // highest lease number
	prices    prices

	spent map[common.Address][]spending // committed
}

// past is a transaction that was admitted and has not left.
type past struct {
	tx      *types.Transaction
	record  []byte
	private bool
	exempt  bool
	held    bool // aside
	at      int64
	order   uint64 // of admission or, if held, of being put aside
	lent    bool   // by Restore to an open lease
	err     error  // reason for holding aside
}

// pastLease is a lease that was opened and not closed.
type pastLease struct {
	id       uint64
	hashes   []common.Hash
	returned map[common.Hash]bool // no longer in the lease
	// inclusions are the transactions of a commit that has begun.
	inclusions []inclusion
}

// read adds a record. A record that cannot be decoded is recorded as poisoned.
func (h *history) read(record []byte) error {
	if h.added == nil {
		h.added, h.open = make(map[common.Hash]*past), make(map[uint64]*pastLease)
		h.departures = newRecent[Departure](maxDepartures, departureTime)
		h.spent = make(map[common.Address][]spending)
	}
	if err := h.parse(record); err != nil {
		h.poisoned = append(h.poisoned, Poison{bytes.Clone(record), err})
	}
	return nil
}

func (h *history) parse(record []byte) (err error) {
	if len(record) == 0 {
		return fmt.Errorf("%w: empty", errRecord)
	}
	var hash common.Hash
	switch kind := record[0]; kind {
	case recordAdded:
		return h.parseAdded(record)
	case recordLeft:
		if err = decode(record, &hash); err == nil {
			h.leave(hash)
		}
	case recordDeparted:
		var d Departure
		if d, err = departureOf(record); err == nil {
			h.leave(d.Hash)
			h.departures.put(d.Hash, d, d.At.UnixNano())
		}
	case recordPrices:
		var now prices
		if err = decode(record, &now.base, &now.floor, &now.average); err == nil {
			h.prices = now
		}
	case recordIncluded:
		var i inclusion
		if err = decode(record, &i); err == nil {
			h.include(i)
		}
	case recordFreed:
		var sender common.Address
		var nonce uint64
		if err = decode(record, &sender, &nonce); err == nil {
			h.free(sender, nonce)
		}
	case recordOpened, recordReturned, recordCommitting, recordCommitted, recordReleased:
		return h.parseLease(record)
	default:
		return fmt.Errorf("%w: unknown kind %#x", errRecord, kind)
	}
	return err
}

// leave forgets a transaction. If it is admitted again later, it is in no
// lease.
func (h *history) leave(hash common.Hash) {
	delete(h.added, hash)
	h.departures.forget(hash)
	for _, l := range h.open {
		l.returned[hash] = true
	}
}

func (h *history) parseAdded(record []byte) error {
	var at uint64
	o := &past{tx: new(types.Transaction), record: bytes.Clone(record)}
	if err := decode(record, &o.private, &o.exempt, &o.held, &at, o.tx); err != nil {
		return err
	}
	h.order++
	o.at, o.order = int64(at), h.order
	h.departures.forget(o.tx.Hash())
	h.added[o.tx.Hash()] = o
	return nil
}

// include records that a transaction is in a block.
func (h *history) include(i inclusion) {
	h.leave(i.Hash)
	h.spend(i.Sender, i.Spending)
}

// free records that a revert has freed a sender's nonces from the given one on.
func (h *history) free(sender common.Address, nonce uint64) {
	h.spent[sender] = slices.DeleteFunc(h.spent[sender], func(s spending) bool { return s.Nonce >= nonce })
	if len(h.spent[sender]) == 0 {
		delete(h.spent, sender)
	}
}

// spend records a committed transaction. It keeps only the newest ones of a
// sender, because the host's state is never far behind.
func (h *history) spend(sender common.Address, s spending) {
	const most = 4096
	spent := h.spent[sender]
	if n := len(spent); n > 0 && spent[n-1].Nonce >= s.Nonce {
		spent = slices.DeleteFunc(spent, func(old spending) bool { return old.Nonce == s.Nonce })
	}
	if len(spent) >= most {
		spent = slices.Delete(spent, 0, most/2)
	}
	h.spent[sender] = append(spent, s)
}

func (h *history) parseLease(record []byte) error {
	var hash common.Hash
	l := &pastLease{returned: make(map[common.Hash]bool)}
	fields := []any{&l.id}
	switch record[0] {
	case recordOpened:
		fields = append(fields, &l.hashes)
	case recordReturned:
		fields = append(fields, &hash)
	case recordCommitting:
		fields = append(fields, &l.inclusions)
	}
	if err := decode(record, fields...); err != nil {
		return err
	}
	h.lastLease = max(h.lastLease, l.id)
	was := h.open[l.id]
	switch record[0] {
	case recordCommitting:
		for _, i := range l.inclusions {
			l.hashes = append(l.hashes, i.Hash)
		}
		h.open[l.id] = l
	case recordOpened:
		h.open[l.id] = l
	case recordReturned:
		if was != nil {
			was.returned[hash] = true
		}
	default:
		delete(h.open, l.id)
		if was != nil {
			h.closeLease(was, record[0] == recordCommitted)
		}
	}
	return nil
}

// closeLease includes the transactions of a lease, or gives them back.
func (h *history) closeLease(l *pastLease, committed bool) {
	if committed {
		for _, included := range l.inclusions {
			h.include(included)
		}
		return
	}
	for _, hash := range l.hashes {
		if o := h.added[hash]; o != nil && !l.returned[hash] {
			o.exempt = true
		}
	}
}

// origins returns the transactions to admit again, in the order of their first
// admission. Those that were held aside come last: a sender may have put another
// transaction in the place of one, which was admitted and so goes first.
func (h *history) origins() []*past {
	return slices.SortedFunc(maps.Values(h.added), func(a, b *past) int {
		switch {
		case a.held == b.held:
			return cmp.Compare(a.order, b.order)
		case a.held:
			return 1
		}
		return -1
	})
}

// leases returns the open leases, oldest first.
func (h *history) leases() []*pastLease {
	return slices.SortedFunc(maps.Values(h.open), func(a, b *pastLease) int { return cmp.Compare(a.id, b.id) })
}

// lend marks the transactions of open leases. They may be in bundles.
func (h *history) lend() {
	for _, l := range h.open {
		for _, hash := range l.hashes {
			if o := h.added[hash]; o != nil && !l.returned[hash] {
				o.lent = true
			}
		}
	}
}
