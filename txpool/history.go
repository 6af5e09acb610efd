package txpool

import (
	"bytes"
	"cmp"
	"encoding/binary"
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
	departed map[common.Hash]pastDeparture

	leases []*pastLease // open leases by number, after reading

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
	at      int64
	order   uint64
	err     error // reason for holding aside
}

// pastDeparture is a departure and its place in the journal.
type pastDeparture struct {
	Departure
	order uint64
}

// pastLease is a lease that was opened and not closed.
type pastLease struct {
	id       uint64
	expires  int64
	hashes   []common.Hash
	returned map[common.Hash]bool // no longer in the lease
	// inclusions are the transactions of a commit that has begun.
	inclusions []inclusion
}

// inclusion is a transaction in a block.
type inclusion struct {
	hash   common.Hash
	sender common.Address
	spending
}

// read adds a record. A record that cannot be decoded is recorded as poisoned.
func (h *history) read(record []byte) error {
	if h.added == nil {
		h.added, h.open = make(map[common.Hash]*past), make(map[uint64]*pastLease)
		h.departed = make(map[common.Hash]pastDeparture)
		h.spent = make(map[common.Address][]spending)
	}
	if err := h.parse(record); err != nil {
		h.poisoned = append(h.poisoned, Poison{bytes.Clone(record), err})
	}
	return nil
}

func (h *history) parse(record []byte) error {
	if len(record) == 0 {
		return fmt.Errorf("%w: empty", errRecord)
	}
	body := record[1:]
	switch kind := record[0]; kind {
	case recordAdded:
		return h.parseAdded(record)
	case recordLeft:
		if len(body) != common.HashLength {
			return fmt.Errorf("%w: a hash of %d bytes", errRecord, len(body))
		}
		h.leave(common.Hash(body))
		delete(h.departed, common.Hash(body))
		return nil
	case recordDeparted:
		d, err := parseDeparture(body)
		if err != nil {
			return err
		}
		h.leave(d.Hash)
		h.order++
		h.departed[d.Hash] = pastDeparture{d, h.order}
		return nil
	case recordPrices:
		if len(body) != 3*numberSize {
			return fmt.Errorf("%w: prices of %d bytes", errRecord, len(body))
		}
		h.prices = prices{binary.BigEndian.Uint64(body), binary.BigEndian.Uint64(body[numberSize:]), binary.BigEndian.Uint64(body[2*numberSize:])}
		return nil
	case recordIncluded:
		included, err := parseInclusion(body)
		if err != nil {
			return err
		}
		h.include(included)
		return nil
	case recordFreed:
		if len(body) != common.AddressLength+numberSize {
			return fmt.Errorf("%w: a sender and a nonce of %d bytes", errRecord, len(body))
		}
		sender, nonce := common.Address(body[:common.AddressLength]), binary.BigEndian.Uint64(body[common.AddressLength:])
		h.spent[sender] = slices.DeleteFunc(h.spent[sender], func(s spending) bool { return s.nonce >= nonce })
		if len(h.spent[sender]) == 0 {
			delete(h.spent, sender)
		}
		return nil
	case recordOpened, recordReturned, recordCommitting, recordCommitted, recordReleased:
		if len(body) < numberSize {
			return fmt.Errorf("%w: a lease's number of %d bytes", errRecord, len(body))
		}
		return h.parseLease(kind, binary.BigEndian.Uint64(body), body[numberSize:])
	default:
		return fmt.Errorf("%w: unknown kind %#x", errRecord, kind)
	}
}

// leave forgets a transaction. If it is admitted again later, it is in no
// lease.
func (h *history) leave(hash common.Hash) {
	delete(h.added, hash)
	for _, l := range h.open {
		l.returned[hash] = true
	}
}

func (h *history) parseAdded(record []byte) error {
	const header = 2 + numberSize
	if len(record) < header {
		return fmt.Errorf("%w: %d bytes", errRecord, len(record))
	}
	if record[1]&^(flagPrivate|flagExempt) != 0 {
		return fmt.Errorf("%w: flags %#x", errRecord, record[1])
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(record[header:]); err != nil {
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	h.order++
	delete(h.departed, tx.Hash())
	h.added[tx.Hash()] = &past{
		tx: tx, record: bytes.Clone(record), private: record[1]&flagPrivate != 0, exempt: record[1]&flagExempt != 0,
		at: int64(binary.BigEndian.Uint64(record[2:])), order: h.order,
	}
	return nil
}

// include records that a transaction is in a block.
func (h *history) include(i inclusion) {
	h.leave(i.hash)
	delete(h.departed, i.hash)
	h.spend(i.sender, i.spending)
}

// parseInclusion decodes the record of an inclusion without its first byte.
func parseInclusion(body []byte) (i inclusion, err error) {
	const (
		size      = common.HashLength + common.AddressLength + numberSize + 32
		authority = common.AddressLength + numberSize
	)
	if len(body) < size || (len(body)-size)%authority != 0 {
		return i, fmt.Errorf("%w: %d bytes of an included transaction", errRecord, len(body))
	}
	i.hash, body = common.Hash(body[:common.HashLength]), body[common.HashLength:]
	i.sender, body = common.Address(body[:common.AddressLength]), body[common.AddressLength:]
	i.nonce = binary.BigEndian.Uint64(body)
	i.cost.SetBytes32(body[numberSize:])
	if authorities := body[numberSize+32:]; len(authorities) > 0 {
		i.carrier = &entry{rare: parseAuthorities(authorities)}
	}
	return i, nil
}

func parseAuthorities(body []byte) *rare {
	r := new(rare)
	for len(body) > 0 {
		r.authorities = append(r.authorities, authority{common.Address(body[:common.AddressLength]), binary.BigEndian.Uint64(body[common.AddressLength:])})
		body = body[common.AddressLength+numberSize:]
	}
	return r
}

// spend records a committed transaction. It keeps only the newest ones of a
// sender, because the host's state is never far behind.
func (h *history) spend(sender common.Address, s spending) {
	const most = 4096
	spent := h.spent[sender]
	if n := len(spent); n > 0 && spent[n-1].nonce >= s.nonce {
		spent = slices.DeleteFunc(spent, func(old spending) bool { return old.nonce == s.nonce })
	}
	if len(spent) >= most {
		spent = slices.Delete(spent, 0, most/2)
	}
	h.spent[sender] = append(spent, s)
}

func (h *history) parseLease(kind byte, id uint64, rest []byte) error {
	h.lastLease = max(h.lastLease, id)
	l := h.open[id]
	switch kind {
	case recordOpened:
		if len(rest) < numberSize || (len(rest)-numberSize)%common.HashLength != 0 {
			return fmt.Errorf("%w: a lease of %d bytes", errRecord, len(rest))
		}
		l := &pastLease{id: id, expires: int64(binary.BigEndian.Uint64(rest)), returned: make(map[common.Hash]bool)}
		for hash := range slices.Chunk(rest[numberSize:], common.HashLength) {
			l.hashes = append(l.hashes, common.Hash(hash))
		}
		h.open[id] = l
		return nil
	case recordReturned:
		if len(rest) != common.HashLength {
			return fmt.Errorf("%w: a hash of %d bytes", errRecord, len(rest))
		}
		if l != nil {
			l.returned[common.Hash(rest)] = true
		}
		return nil
	case recordCommitting:
		l, err := parseCommitting(id, rest)
		if err == nil {
			h.open[id] = l
		}
		return err
	}
	if len(rest) != 0 {
		return fmt.Errorf("%w: %d bytes after the end", errRecord, len(rest))
	}
	if l == nil {
		return nil
	}
	delete(h.open, id)
	if kind == recordCommitted {
		for _, i := range l.inclusions {
			h.include(i)
		}
		return nil
	}
	for _, hash := range l.hashes {
		if !l.returned[hash] {
			h.exempt(hash)
		}
	}
	return nil
}

// parseCommitting decodes the record of a commit that has begun, without its
// first byte and number.
func parseCommitting(id uint64, rest []byte) (*pastLease, error) {
	l := &pastLease{id: id, returned: make(map[common.Hash]bool)}
	for len(rest) > 0 {
		if len(rest) < lengthSize || uint64(len(rest)-lengthSize) < uint64(binary.BigEndian.Uint32(rest)) {
			return nil, fmt.Errorf("%w: a commit that ends early", errRecord)
		}
		size := lengthSize + int(binary.BigEndian.Uint32(rest))
		included, err := parseInclusion(rest[lengthSize:size])
		if err != nil {
			return nil, err
		}
		l.inclusions, l.hashes = append(l.inclusions, included), append(l.hashes, included.hash)
		rest = rest[size:]
	}
	return l, nil
}

// exempt records that a transaction was given back.
func (h *history) exempt(hash common.Hash) {
	if past := h.added[hash]; past != nil {
		past.exempt = true
	}
}

// candidates returns the transactions to admit again, in the order of their
// first admission, with their origins.
func (h *history) candidates() ([]candidate, []*past) {
	origin := slices.SortedFunc(maps.Values(h.added), func(a, b *past) int { return cmp.Compare(a.order, b.order) })
	batch := make([]candidate, len(origin))
	for i, o := range origin {
		batch[i].tx = o.tx
	}
	h.leases = slices.SortedFunc(maps.Values(h.open), func(a, b *pastLease) int { return cmp.Compare(a.id, b.id) })
	return batch, origin
}
