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

// Restored is the result of Restore.
type Restored struct {
	// Transactions is how many transactions are in the pool again.
	Transactions int
	// Displaced contains the transactions that the records have but the restored pool
	// has not. A transaction whose nonce is already used is gone for good. Any other is
	// held aside, and the pool tries again to admit it: see StatusHeld.
	Displaced []Displaced
	// Poisoned contains records that could not be read. Pool.Records returns them
	// too, so that they stay in the log and are not lost.
	Poisoned []Poison
}

// Poison is a Record of the host's log that Restore could not use, with the reason Err.
type Poison struct {
	Record []byte
	Err    error
}

// ReplayChange passes one record of the host's log to an empty pool. The records are
// those of [Pool.Records], followed by those that [Pool.TakeChanges] has returned
// since, in order. After the last record, the host calls [Pool.Restore]. It must call
// no other method in between. A host can also follow the log of another process with
// ReplayChange, and call Restore when that process has ended.
//
// A record that cannot be read is skipped and listed in Restored.Poisoned. ReplayChange
// does not keep the bytes of record after it returns. Unless Config.Sender is set, the
// pool recovers the senders of the transactions in the background, because that is the
// slow part of Restore.
func (p *Pool) ReplayChange(record []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replayed == nil {
		p.replayed = newHistory()
	}
	added := p.replayed.readRecord(record)
	if added != nil {
		p.recoverAhead(added)
	}
}

// recoverAhead starts recovering a transaction's sender in the background. The caller
// holds p.mu.
func (p *Pool) recoverAhead(tx *types.Transaction) {
	if p.cfg.Sender != nil {
		return
	}
	// The transaction caches its sender, so that Restore need not recover it.
	p.replayed.unknown = append(p.replayed.unknown, tx)
	if p.recoveries.TryAcquire(1) {
		go p.recoverUnknown()
	}
}

// recoverUnknown recovers the senders of replayed transactions in the background.
func (p *Pool) recoverUnknown() {
	defer p.recoveries.Release(1)
	for {
		p.mu.Lock()
		some := p.replayed.takeUnknown()
		p.mu.Unlock()
		// All senders are known, or Restore has begun and recovers the rest itself.
		if len(some) == 0 {
			return
		}
		for _, tx := range some {
			_, _ = types.Sender(p.signer, tx) // Restore finds the error
		}
	}
}

// Restore fills an empty pool with the transactions from the records that were
// passed to ReplayChange. It also restores the base fee, the floor and the
// departures, but not the quarantine and the counts of replacements. Config.Observe
// receives an event for each restored transaction.
//
// Restore loses no acknowledged transaction. It admits transactions above the caps,
// even if the caps are lower than before, and exempts the excess from them. It
// refuses only transactions whose nonce is used. Transactions that cannot be
// admitted now are held aside: see StatusHeld. The result lists both.
//
// Restore must be called before all other methods except ReplayChange.
func (p *Pool) Restore() Restored {
	p.mu.Lock()
	h := p.replayed
	p.replayed = nil
	p.mu.Unlock()
	if h == nil {
		h = newHistory()
	}
	batch := p.examineBack(h.origins())
	p.beginRestore(h)
	p.admitAll(batch)
	p.setAside(batch)
	displaced := p.takeDisplaced()
	p.endRestore(batch)
	for _, poison := range h.poisoned {
		p.cfg.Logger.Error("txpool: record skipped", "err", poison.Err, "bytes", len(poison.Record))
	}
	p.deliverEvents()
	return Restored{Transactions: p.Size(), Displaced: displaced, Poisoned: h.poisoned}
}

// beginRestore restores prices, departures and the records that cannot be read.
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
		p.core.departures.remember(d.Hash, d, d.At.UnixNano())
	}
	for _, poison := range h.poisoned {
		p.poisoned = append(p.poisoned, poison.Record)
	}
}

// endRestore applies the caps again to transactions that were not exempt before.
func (p *Pool) endRestore(batch []candidate) {
	p.lockCore()
	defer p.mu.Unlock()
	for i := range batch {
		t := &batch[i]
		if t.err == nil && !t.entry.gone && !t.origin.exempt {
			// While the pool was restored, no cap applied, so that no transaction was refused.
			// Now the caps apply again to this one.
			p.core.applyCaps(t.entry)
		}
	}
	p.core.restoring, p.core.keeping = false, false
}

// TakeChanges returns the records of all changes since its last call, in order, if
// Config.KeepChanges is set. A host that must not lose an acknowledged transaction
// appends these records to its log before it tells a user that a transaction was
// accepted.
//
// Only one goroutine at a time may take changes and append them, so that the log
// has them in order. A crash may cut off the log after any record, and the log may
// contain a record twice.
func (p *Pool) TakeChanges() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	changes := p.core.changes
	p.core.changes = nil
	return changes
}

// Records returns records of the pool's whole content at one moment, so that a host can
// shorten its log. They contain the prices, transactions, transactions held aside,
// departures, and records that Restore could not read. They replace all records that
// TakeChanges has returned before. It does no harm if records of earlier changes follow
// them in the log.
func (p *Pool) Records() [][]byte {
	now := p.clock()
	p.mu.Lock()
	records := [][]byte{p.core.fees.record()}
	for _, d := range p.core.departures.all(now) {
		records = append(records, d.record())
	}
	for _, o := range p.core.aside.inOrder() {
		records = append(records, o.addedRecord())
	}
	records = append(records, p.poisoned...)
	var entries []*entry
	for _, a := range p.core.list {
		for _, e := range a.txs {
			entries = append(entries, e.entry)
		}
	}
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	admitted := make([]*past, len(entries))
	for i, e := range entries {
		admitted[i] = e.past()
	}
	p.mu.Unlock()
	for _, o := range admitted { // without the lock, because it takes long
		records = append(records, o.addedRecord())
	}
	return records
}

// applyCaps ends a transaction's exemption from the caps if there is room for it.
func (c *core) applyCaps(e *entry) {
	a, s := e.account, e.group()
	own := len(a.txs) - int(a.exempt)
	if a.short() || own >= c.cfg.MaxPerSender || !fit(usage{1, uint64(e.memory)}, c.capped(s), c.limits[s], usage{}) {
		return
	}
	c.countEntry(e, -1)
	e.exempt = false
	a.exempt--
	c.countEntry(e, 1)
	c.recountGapped(a)
}

// history is the content of the pool according to the records of a log.
type history struct {
	added    map[common.Hash]*past
	unknown  []*types.Transaction // transactions whose senders are not known yet
	order    uint64
	poisoned []Poison

	departures recent[Departure]
	prices     prices
}

func newHistory() *history {
	return &history{added: make(map[common.Hash]*past), departures: newRecent[Departure](maxDepartures, departureTime)}
}

// takeUnknown returns some of the transactions whose senders must still be recovered.
func (h *history) takeUnknown() (some []*types.Transaction) {
	if h == nil {
		return nil
	}
	n := min(len(h.unknown), share)
	some, h.unknown = h.unknown[:n], h.unknown[n:]
	return some
}

// readRecord applies a record and returns the transaction that it adds, if any.
func (h *history) readRecord(record []byte) (added *types.Transaction) {
	added, err := h.parseRecord(record)
	if err != nil {
		h.poisoned = append(h.poisoned, Poison{bytes.Clone(record), err})
	}
	return added
}

func (h *history) parseRecord(record []byte) (added *types.Transaction, err error) {
	if len(record) == 0 {
		return nil, fmt.Errorf("%w: empty", errRecord)
	}
	kind := record[0]
	switch kind {
	case recordAdded:
		return h.parseAdded(record)
	case recordRoom:
		err = h.parseRoom(record)
	case recordLeft:
		var hash common.Hash
		err = decode(record, &hash)
		if err == nil {
			h.removeTransaction(hash)
		}
	case recordDeparted:
		var d Departure
		d, err = departureOf(record)
		if err == nil {
			h.removeTransaction(d.Hash)
			h.departures.remember(d.Hash, d, d.At.UnixNano())
		}
	case recordPrices:
		var now prices
		err = decode(record, &now.base, &now.floor, &now.average)
		if err == nil {
			h.prices = now
		}
	default:
		err = fmt.Errorf("%w: unknown kind %#x", errRecord, kind)
	}
	return nil, err
}

// removeTransaction forgets a transaction.
func (h *history) removeTransaction(hash common.Hash) {
	delete(h.added, hash)
	h.departures.Remove(hash)
}

func (h *history) parseAdded(record []byte) (added *types.Transaction, err error) {
	var at uint64
	o := &past{tx: new(types.Transaction)}
	if err := decode(record, &o.private, &o.exempt, &o.ran, &o.held, &at, o.tx); err != nil {
		return nil, err
	}
	h.order++
	o.at, o.order = int64(at), h.order
	h.departures.Remove(o.tx.Hash())
	h.added[o.tx.Hash()] = o
	return o.tx, nil
}

func (h *history) parseRoom(record []byte) error {
	var hash common.Hash
	var exempt, ran bool
	if err := decode(record, &hash, &exempt, &ran); err != nil {
		return err
	}
	o := h.added[hash] // nil if it has left, because the log may have a record twice
	if o != nil {
		o.exempt, o.ran = exempt, ran
	}
	return nil
}

// origins returns the transactions that Restore must admit again, in their first order.
func (h *history) origins() []*past {
	return slices.SortedFunc(maps.Values(h.added), func(a, b *past) int {
		switch {
		case a.held == b.held:
			return cmp.Compare(a.order, b.order)
		// A transaction that was held aside comes after all admitted ones. One of these may
		// have the same nonce, because its sender has sent it in the meantime, and it must keep
		// the nonce.
		case a.held:
			return 1
		}
		return -1
	})
}
