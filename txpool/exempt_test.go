package txpool

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"
)

// Bundles fail again and again, and newcomers fill the pool each time. The pool
// never holds more than the sum of its caps and the transactions that were
// committed at one time, and loses no transaction that came back.
func TestExemptMemoryIsBounded(t *testing.T) {
	const limit, block, depth = 8, 4, 3
	w := newWorld(t, tiny(limit, limit), perSender(1000))
	next, price := 0, int64(2)
	fill := func() { // each pays more than all before it, and is drained first
		for range 4 * limit {
			price++
			_ = w.Add(tx(next%64, uint64(next/64), price)) // most are refused
			next++
		}
	}
	back := make(map[common.Hash]bool)
	for range 12 {
		var queue []Block
		for range depth {
			fill()
			queue = append(queue, w.commit(Budget{Count: block}))
		}
		fill()
		var failed []*types.Transaction
		for _, b := range queue {
			failed = append(failed, b.Transactions...)
		}
		require.Empty(t, w.fails(failed...))
		for _, tx := range failed {
			back[tx.Hash()] = true
		}
		require.LessOrEqual(t, w.Size(), 3*limit+depth*block)
	}
	require.Greater(t, len(back), 2*limit)
	for hash := range back {
		require.NotEqual(t, StatusUnknown, w.Status(hash))
	}
}

// The run that lost 54 of 120: blocks fail while their sender has filled its share again.
func TestT5FailedBlocksOfASenderAtItsLimit(t *testing.T) {
	const limit, depth = 4, 10
	w := newWorld(t, perSender(limit), tiny(3*limit, 1000))
	var queue []Block
	sent := uint64(0)
	send := func() {
		w.add(chain(0, sent, limit, 2)...)
		sent += limit
	}
	for range depth {
		send()
		queue = append(queue, w.commit(Budget{}))
	}
	send()
	w.include(queue...)
	require.Empty(t, w.revert(queue...))
	w.stands(0, strings.Repeat("p", int(sent)))
	require.Equal(t, depth*limit, w.Stats().Exempt)
	w.refuse(tx(0, sent, 2), ErrNonceTooHigh) // newcomers have no exemption
	same(t, chain(0, 0, int(sent), 2), w.drain(Budget{}).Transactions())
}

// A newcomer is refused if every transaction that it could displace is better.
// A worse one that came back is no victim.
func TestReturnedIsNoVictim(t *testing.T) {
	w := newWorld(t, tiny(2, 2))
	w.returned(tx(0, 0, 2))
	w.add(tx(1, 0, 5), tx(2, 0, 6))
	w.refuse(tx(3, 0, 4), ErrPoolFull, "want ≥ 5000000001")
	w.add(tx(3, 0, 7))
	w.firsts("p-pp")
}

// Transactions that came back do not count towards the cap of bytes: newcomers
// have all of it.
func TestReturnedTakesNoBytesOfTheCap(t *testing.T) {
	newcomers := []*types.Transaction{padded(1, 0, 2, 500), padded(2, 0, 2, 500)}
	w := newWorld(t, narrow(1000, weigh(newcomers...)))
	w.returned(padded(0, 0, 2, 500))
	w.add(newcomers...)
	require.Equal(t, 3, w.Stats().Pending)
	w.refuse(padded(3, 0, 2, 1), ErrPoolFull)
}

// A transaction of a failed block that is still in the pool becomes exempt from
// the caps, also if it waits behind a gap.
func TestReturnedIsInThePool(t *testing.T) {
	w := newWorld(t, tiny(1, 1000), func(c *Config) { c.MaxQueued = 1 })
	w.add(tx(0, 0, 2), tx(1, 1, 2))
	require.Empty(t, w.fails(tx(0, 0, 2), tx(1, 1, 2)))
	require.Equal(t, 2, w.Stats().Exempt)
	w.add(tx(2, 0, 9), tx(3, 1, 9))
	w.has(StatusPending, tx(0, 0, 2))
	w.has(StatusQueued, tx(1, 1, 2))
}

// While a block returns, transactions of its sender lie behind a gap for a moment. They displace no
// transaction of another sender from the full queue (I12).
func TestRevertDisplacesNoBystander(t *testing.T) {
	w := newWorld(t, tiny(10, 10), func(c *Config) { c.MaxQueued = 1 })
	w.baseFee(5)
	w.add(tx(0, 0, 6))
	w.add(capped(0, 1, 3, 3)) // parked, because it does not pay the base fee
	w.add(tx(1, 1, 6))        // the bystander waits behind a gap
	block := w.commit(Budget{})
	w.has(StatusParked, tx(0, 1, 3))
	w.include(block)
	require.Empty(t, w.revert(block))
	w.has(StatusPending, tx(0, 0, 6))
	w.has(StatusParked, tx(0, 1, 3))
	w.has(StatusQueued, tx(1, 1, 6))
}

// A transaction of a failed block is still exempt after a restart: better newcomers do not displace
// it. Behind a poor parent that can be displaced it stays too.
func TestExemptAfterARestart(t *testing.T) {
	w := newWorld(t, tiny(2, 1000))
	w.add(tx(0, 0, 2), tx(0, 1, 2))
	require.Empty(t, w.revert(w.commit(Budget{})))
	require.NoError(t, w.Reject(tx(0, 0, 2).Hash(), errTest))
	w.add(tx(0, 0, 3))
	w.restart()
	require.Equal(t, 1, w.Stats().Exempt)
	w.add(tx(1, 0, 9), tx(2, 0, 9), tx(3, 0, 10))
	w.has(StatusUnknown, tx(0, 0, 3))
	w.has(StatusQueued, tx(0, 1, 2))
}

// The replacement of a transaction that came back has its room, also after a restart. So has one
// that came back into a full pool.
func TestRoomAfterARestart(t *testing.T) {
	w := newWorld(t, tiny(2, 2))
	w.returned(tx(0, 0, 2))
	w.add(tx(0, 0, 3))
	w.add(tx(1, 0, 5), tx(2, 0, 5))
	s := w.build(Budget{})
	w.takes(s, tx(1, 0, 5))
	w.add(tx(3, 0, 5))
	s.Cancel()
	require.Equal(t, 2, w.Stats().Exempt)
	w.restart()
	require.Equal(t, 2, w.Stats().Exempt)
	w.add(tx(4, 0, 9), tx(5, 0, 9))
	w.firsts("pp--pp")
}

// A restart with smaller caps keeps everything. Transactions above them are
// exempt; the others are not.
func TestRestartWithSmallerCaps(t *testing.T) {
	w := newWorld(t)
	for i := range 6 {
		w.add(append(chain(i, 0, 4, 2), chain(i, 10, 4, 2)...)...)
	}
	restored := w.restart(tiny(5, 5), perSender(1), func(c *Config) { c.MinGasPrice = 3 * gwei })
	require.Equal(t, Restored{Transactions: 48}, restored)
	for i := range 6 {
		w.stands(i, "kkkk------qqqq")
	}
	require.Equal(t, 48-6, w.Stats().Exempt, "one of each sender is within the caps")
}

// A restart takes back transactions that are larger than the configuration now
// allows.
func TestRestartWithSmallerTransactions(t *testing.T) {
	for name, smaller := range map[string]func(*Config){
		"size": func(c *Config) { c.MaxTxSize = 300 },
		"gas":  func(c *Config) { c.MaxTxGas = 30_000 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(creation(0, make([]byte, 500), 100_000))
			require.Equal(t, Restored{Transactions: 1}, w.restart(smaller))
		})
	}
}

// In a full queue the last transaction of a sender makes way for an earlier nonce of the same
// sender, so that nonces can arrive in any order. A later nonce is refused.
func TestOwnLastMakesWayForEarlierNonce(t *testing.T) {
	w := newWorld(t, tiny(10, 10), func(c *Config) { c.MaxQueued = 2 })
	w.add(tx(0, 5, 2), tx(0, 3, 2))
	w.refuse(tx(0, 6, 2), ErrPoolFull)
	w.add(tx(0, 1, 2))
	w.has(StatusUnknown, tx(0, 5, 2))
	w.add(tx(0, 0, 2), tx(0, 2, 2))
	w.stands(0, "pppp")
}
