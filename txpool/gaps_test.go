package txpool

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestT1NoGap: a sender's ready transactions are consecutive from its account nonce, through
// promotion and demotion.
func TestT1NoGap(t *testing.T) {
	w := newWorld(t)
	w.add(tx(0, 1, 2), tx(0, 3, 2))
	w.stands(0, "-q-q")
	w.add(tx(0, 0, 2))
	w.stands(0, "pp-q")
	nonce, known := w.NextNonce(addr(0))
	require.True(t, known)
	require.EqualValues(t, 2, nonce)
	w.add(tx(0, 2, 2))
	w.stands(0, "pppp")
	w.remove(tx(0, 1, 2))
	w.stands(0, "p-qq")
	w.add(tx(0, 1, 5))
	w.stands(0, "pppp")
	w.nonce(0, 2)
	w.reset(Head{})
	w.stands(0, "--pp")
}

// Caps of a sender: one that could run takes the place of the last one behind a gap, so that a
// wrong order is no trap.
func TestSenderLimit(t *testing.T) {
	w := newWorld(t, perSender(3))
	w.add(tx(0, 1, 2), tx(0, 2, 2), tx(0, 3, 2))
	w.refuse(tx(0, 4, 9), ErrSenderLimit, "account limit exceeded: address "+addr(0).Hex()+" has 3 transactions, limit 3")
	w.add(tx(0, 0, 2))
	w.stands(0, "ppp-")
	w.refuse(tx(0, 3, 9), ErrSenderLimit)
	w.add(tx(0, 2, 9)) // replacing is always possible
}

// A transaction that fills a gap takes the place of the sender's last one that
// may go: it waits behind a gap, is not locked and did not come back.
func TestSenderLimitMakesWay(t *testing.T) {
	w := newWorld(t, perSender(3))
	w.add(tx(0, 0, 2), tx(0, 2, 2), tx(0, 4, 2))
	w.refuse(tx(0, 3, 9), ErrSenderLimit) // it would wait too
	require.Empty(t, w.fails(tx(0, 4, 2)))
	w.add(tx(0, 1, 9)) // the last one came back
	w.stands(0, "pp--q")
	w.refuse(tx(0, 2, 9), ErrSenderLimit)

	w.add(tx(1, 0, 2), tx(1, 2, 2), tx(1, 4, 2))
	w.add(tx(1, 1, 9))
	w.stands(1, "ppp--")
	w.refuse(tx(1, 3, 9), ErrSenderLimit)
}

// A sender that is above its limit, because transactions came back, makes no way
// for a newcomer.
func TestSenderAboveItsLimitMakesNoWay(t *testing.T) {
	w := newWorld(t, perSender(3))
	w.add(tx(0, 0, 2), tx(0, 1, 2))
	block := w.commit(Budget{})
	w.add(tx(0, 3, 2), tx(0, 4, 2))
	require.Empty(t, w.fails(block.Transactions...))
	w.stands(0, "pp-qq")
	w.refuse(tx(0, 2, 9), ErrSenderLimit)
}

// No sender can keep the room behind gaps: the sender with most transactions
// there gives way.
func TestQueueIsShared(t *testing.T) {
	w := newWorld(t, tiny(16, 16))
	w.add(chain(60, 1, 16, 2)...) // runs never
	require.Equal(t, 16, w.Stats().Queued)
	for i := range 8 {
		w.add(tx(i, 1, 2))
		require.Equal(t, 16, w.Stats().Queued)
	}
	w.stands(60, "-qqqqqqqq--------")
	w.add(tx(0, 2, 2))
	w.refuse(tx(60, 8, 2), ErrPoolFull)
}

// Transactions that a failure puts behind a gap stay. A sender with more than its
// share there makes way.
func TestDemotionKeepsTheModest(t *testing.T) {
	w := newWorld(t, tiny(16, 16))
	w.add(chain(60, 1, 16, 2)...)
	w.add(chain(0, 0, 8, 50)...)
	w.drain(Budget{Count: 1})
	require.NoError(t, w.Reject(tx(0, 0, 50).Hash(), errTest))
	w.stands(0, "-qqqqqqq")
	w.add(tx(0, 0, 60))
	w.stands(0, "pppppppp")
}

// A large newcomer behind a gap cannot clear the room of many small ones.
func TestQueueVictimsAreFew(t *testing.T) {
	w := newWorld(t, tiny(64, 64), narrow(20_000, 55_000), perSender(64))
	w.add(chain(60, 1, 50, 2)...)
	w.refuse(padded(0, 1, 2, 15_000), ErrPoolFull)
	w.add(padded(0, 1, 2, 500))
}

// Junk behind gaps costs nothing and takes no room from others: not from
// transactions behind gaps, and not from those that a failure puts there (T5).
func TestJunkBehindGapsDisplacesNothing(t *testing.T) {
	w := newWorld(t, tiny(40, 16))
	w.add(chain(0, 0, 16, 50)...)
	for i := range 16 {
		w.add(tx(1+i, 1, 50))
	}
	for i := range 40 {
		w.refuse(tx(20+i, 1, 1000), ErrPoolFull)
	}
	s := w.build(Budget{})
	w.takes(s, tx(0, 0, 50))
	s.Fail(errTest)
	s.Cancel()
	w.stands(0, "-qqqqqqqqqqqqqqq")
	for i := range 16 {
		w.stands(1+i, "-q")
	}
}

// A transaction that could run keeps its room after a restart too: an honest sender's fifteen,
// behind a first one that failed, stay while junk comes that never pays (T5).
func TestRestartKeepsTheRoomOfThoseThatRan(t *testing.T) {
	for name, fill := range map[string]func(*world){
		"in order":        func(w *world) { w.add(chain(0, 0, 16, 50)...) },
		"the first last":  func(w *world) { w.add(append(chain(0, 1, 15, 50), tx(0, 0, 50))...) },
		"in the content":  func(w *world) { w.add(chain(0, 0, 16, 50)...); w.shorten() },
		"after they came": func(w *world) { w.add(chain(0, 0, 16, 50)...); w.restart(); w.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tiny(40, 16))
			fill(w)
			s := w.build(Budget{})
			w.takes(s, tx(0, 0, 50))
			s.Fail(errTest)
			w.restart()
			for i := range 200 {
				_ = w.Add(tx(1+i, 1, 1000))
			}
			w.stands(0, "-qqqqqqqqqqqqqqq")
		})
	}
}

// A transaction that came back never gives way to one behind a gap, and no sender
// gives way to another with the same number of transactions.
func TestQueueOfReturned(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxQueued = 3 })
	w.add(tx(0, 1, 2), tx(0, 2, 2), tx(0, 3, 2))
	require.Empty(t, w.fails(tx(0, 3, 2)))
	w.add(tx(1, 1, 2)) // there is room for three besides
	w.add(tx(2, 1, 2)) // sender 0 has most: its last one that may go
	w.stands(0, "-q-q")
	w.refuse(tx(2, 2, 9), ErrPoolFull) // all have as many
}
