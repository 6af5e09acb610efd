package txpool

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// heldAside holds transactions aside, by hash. They count towards the bound of
// the whole pool, because they use memory, but towards no other cap.
//
// A transaction that comes back is held aside if it cannot be admitted now: the
// host cannot read its account, or a check now refuses it. It is in the
// journal, and each Reset and CleanupExpired tries it again, until it is
// admitted, its nonce is used, or its lifetime is over. Its sender cannot add
// it a second time; two copies would leave the pool twice, each for a different
// reason.
type heldAside struct {
	txs  map[common.Hash]*past
	used usage
}

// put adds a transaction. It replaces one with the same hash.
func (h *heldAside) put(o *past) {
	h.remove(o.tx.Hash())
	h.txs[o.tx.Hash()] = o
	h.used.add(usage{1, memoryOf(o.tx)})
}

// remove removes a transaction.
func (h *heldAside) remove(hash common.Hash) {
	if o := h.txs[hash]; o != nil {
		delete(h.txs, hash)
		h.used.add(usage{-1, -memoryOf(o.tx)})
	}
}

// superseded is the error of a transaction that comes back while another one of
// the sender has its nonce. It wraps ErrReplaced.
type superseded struct{ by common.Hash }

func (s *superseded) Error() string { return ErrReplaced.Error() + " by " + s.by.String() }
func (s *superseded) Unwrap() error { return ErrReplaced }

// final reports whether an error means that a transaction that came back can
// never be admitted.
func final(err error) bool {
	for _, never := range []error{ErrNonceTooLow, ErrReplaced, ErrInvalidSender, ErrInvalidChainID, ErrMalformed} {
		if errors.Is(err, never) {
			return true
		}
	}
	return false
}

// setAside handles the transactions of a batch that came back and were not
// admitted: it holds them aside or records their departure, and returns them.
func (p *Pool) setAside(batch []candidate) (displaced []Displaced) {
	now := p.clock()
	_ = p.step(func(c *core) error {
		for i := range batch {
			t := &batch[i]
			switch {
			case t.err == nil || t.tx == nil:
			case errors.Is(t.err, ErrAlreadyKnown):
				if e := c.all[t.tx.Hash()]; e != nil {
					c.apply(plan{account: e.account, exempts: []*entry{e}})
				}
			case final(t.err):
				departs := t.departs()
				c.note(c.depart(departs.departure(c.now)))
				displaced = append(displaced, Displaced{Tx: t.tx, Err: t.err})
			default:
				p.aside(c, t, now)
				displaced = append(displaced, Displaced{Tx: t.tx, Err: t.err, Held: true})
			}
		}
		return nil
	})
	return displaced
}

// departs returns the event of a candidate that is not admitted.
func (t *candidate) departs() Event {
	event := Event{Kind: Dropped, Tx: t.tx, Sender: t.from, Reason: t.err}
	if t.origin != nil {
		event.Private = t.origin.private
	}
	if s := new(superseded); errors.As(t.err, &s) {
		event.By = s.by
	}
	return event
}

// aside holds a transaction aside that came back.
func (p *Pool) aside(c *core, t *candidate, now int64) {
	o := &past{tx: t.tx, at: now, private: t.private, exempt: true, err: t.err}
	switch {
	case t.origin != nil:
		o.at = min(t.origin.at, now)
	case t.entry != nil:
		o.at, o.private = t.entry.at, t.entry.private
	}
	c.aside.put(o)
	c.note(o.addedRecord())
}

// retryHeld tries to admit the transactions that are held aside. It returns how
// many it dropped.
func (p *Pool) retryHeld() (dropped int) {
	p.mu.Lock()
	origin := slices.SortedFunc(maps.Values(p.core.aside.txs), func(a, b *past) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.tx.Nonce(), b.tx.Nonce()))
	})
	p.mu.Unlock()
	if len(origin) == 0 {
		return 0
	}
	batch := p.examineBack(origin)
	p.admitAll(batch)
	now := p.clock()
	_ = p.step(func(c *core) error {
		for i := range batch {
			t, o := &batch[i], origin[i]
			expired := now-o.at >= int64(p.cfg.Lifetime)
			switch {
			case t.err == nil, errors.Is(t.err, ErrAlreadyKnown):
				c.aside.remove(o.tx.Hash())
				continue
			case !final(t.err) && !expired:
				o.err = t.err
				continue
			case !final(t.err):
				t.err = ErrExpired
			}
			c.aside.remove(o.tx.Hash())
			event := t.departs()
			event.Age = time.Duration(now - o.at)
			c.emit(event, nil)
			dropped++
		}
		return nil
	})
	return dropped
}

// examineBack is examineAll for transactions that were accepted before.
func (p *Pool) examineBack(origin []*past) []candidate {
	batch := make([]candidate, len(origin))
	for i, o := range origin {
		batch[i] = candidate{tx: o.tx, private: o.private, back: true, origin: o}
	}
	p.examineAll(batch, nil)
	return batch
}
