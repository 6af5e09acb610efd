package txpool

import (
	"context"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"
)

// builders are sessions that run while a machine does random things to their
// pool.
type builders struct {
	*machine
	sessions []*Session
	offered  map[*Session]map[common.Hash]bool
	stop     map[*Session]context.CancelFunc
}

func (b *builders) actions() map[string]func(*rapid.T) {
	actions := b.machine.actions()
	actions["build"] = func(t *rapid.T) {
		ctx, cancel := context.WithCancel(context.Background())
		s := b.pool.Build(ctx, Budget{Gas: rapid.Uint64Range(txGas, 10*txGas).Draw(t, "gas")})
		b.sessions = append(b.sessions, s)
		b.offered[s], b.stop[s] = make(map[common.Hash]bool), cancel
	}
	for _, name := range []string{"next", "next again"} { // more often than others
		actions[name] = func(t *rapid.T) {
			s := b.session(t)
			for range rapid.IntRange(1, 4).Draw(t, "times") {
				if tx := s.Next(); tx != nil {
					b.checkOffer(t, s, tx)
					b.answer(t, s)
				}
			}
		}
	}
	actions["end"] = func(t *rapid.T) {
		s := b.session(t)
		switch rapid.IntRange(0, 3).Draw(t, "end") {
		case 0:
			_ = s.Cancel()
		case 1:
			_ = s.Commit()
		case 2:
			b.stop[s]()
		default:
			if l, err := s.Seal(); err == nil {
				b.leases = append(b.leases, l)
			}
		}
	}
	return actions
}

func (b *builders) session(t *rapid.T) *Session {
	if len(b.sessions) == 0 {
		t.Skip("no session")
	}
	return rapid.SampledFrom(b.sessions).Draw(t, "session")
}

func (b *builders) answer(t *rapid.T, s *Session) {
	switch rapid.IntRange(0, 5).Draw(t, "answer") {
	case 0:
		s.Fail(errors.New("reverted"))
	case 1:
		s.Later()
	case 2: // none
	default:
		s.Used(txGas, 100)
	}
}

// checkOffer checks that a session has not returned a transaction before, that
// the transaction is leased, and that nothing before it is missing.
func (b *builders) checkOffer(t *rapid.T, s *Session, tx *types.Transaction) {
	if b.offered[s][tx.Hash()] {
		t.Fatalf("%s is offered again", tx.Hash())
	}
	b.offered[s][tx.Hash()] = true
	if status := b.pool.Status(tx.Hash()); status != StatusLeased {
		t.Fatalf("%s is offered and %v", tx.Hash(), status)
	}
	e := b.pool.core.all[tx.Hash()]
	next := e.account.nonce
	for _, l := range e.account.txs {
		if l.nonce < e.account.nonce {
			continue // used, but still leased
		}
		if l.nonce != next || l.lease == nil {
			t.Fatalf("nonce %d is offered before nonce %d", e.nonce, next)
		}
		if next++; l.entry == e {
			return
		}
	}
}

// The invariants hold while sessions run beside any sequence of other calls.
func TestInvariantsUnderRandomSessions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &builders{machine: newMachine(t), offered: make(map[*Session]map[common.Hash]bool), stop: make(map[*Session]context.CancelFunc)}
		t.Repeat(b.actions())
		for _, cancel := range b.stop {
			cancel()
		}
	})
}
