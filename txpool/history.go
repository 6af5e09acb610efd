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

// history is the content of a log.
type history struct {
	added    map[common.Hash]*past
	order    uint64
	poisoned []Poison

	departures recent[Departure]
	prices     prices
}

// past is a transaction that was admitted and has not left.
type past struct {
	tx      *types.Transaction
	record  []byte
	private bool
	exempt  bool
	ran     bool // or could run at some time
	held    bool // aside
	at      int64
	order   uint64 // of admission or, if held, of being put aside
	err     error  // reason for holding aside
}

// past returns what must be known of an entry to admit it again.
func (e *entry) past() *past {
	return &past{tx: e.tx, at: e.at, private: e.private, exempt: e.exempt, ran: e.ran}
}

// addedRecord returns the record of an admission.
func (o *past) addedRecord() []byte {
	return encode(recordAdded, o.private, o.exempt, o.ran, o.held, uint64(o.at), o.tx)
}

// read adds a record. A record that cannot be decoded is recorded as poisoned.
func (h *history) read(record []byte) error {
	if h.added == nil {
		h.added = make(map[common.Hash]*past)
		h.departures = newRecent[Departure](maxDepartures, departureTime)
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
	switch kind := record[0]; kind {
	case recordAdded:
		return h.parseAdded(record)
	case recordRoom:
		return h.parseRoom(record)
	case recordLeft:
		var hash common.Hash
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
	default:
		return fmt.Errorf("%w: unknown kind %#x", errRecord, kind)
	}
	return err
}

// leave forgets a transaction.
func (h *history) leave(hash common.Hash) {
	delete(h.added, hash)
	h.departures.forget(hash)
}

func (h *history) parseAdded(record []byte) error {
	var at uint64
	o := &past{tx: new(types.Transaction), record: bytes.Clone(record)}
	if err := decode(record, &o.private, &o.exempt, &o.ran, &o.held, &at, o.tx); err != nil {
		return err
	}
	h.order++
	o.at, o.order = int64(at), h.order
	h.departures.forget(o.tx.Hash())
	h.added[o.tx.Hash()] = o
	return nil
}

func (h *history) parseRoom(record []byte) error {
	var hash common.Hash
	var exempt, ran bool
	if err := decode(record, &hash, &exempt, &ran); err != nil {
		return err
	}
	if o := h.added[hash]; o != nil { // it may have left, if the log has the record twice
		o.exempt, o.ran = exempt, ran
	}
	return nil
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
