package txpool

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// If one place becomes free, the best waiting transaction gets it, whatever its
// size.
func TestBestWaitingComesIn(t *testing.T) {
	w := newWorld(t, tiny(1, 5))
	w.baseFee(30)
	w.add(tx(0, 0, 50), capped(1, 0, 5, 20), heavy(2, 0, 9, 20, 3000))
	w.baseFee(1)
	w.firsts("pkk")
	w.remove(tx(0, 0, 50))
	w.firsts("-kp")
}

// If there is no place, the best waiting transaction displaces a worse one. It
// does not come after a smaller one, which it would then displace.
func TestBestWaitingDisplaces(t *testing.T) {
	w := newWorld(t, tiny(1, 5))
	w.baseFee(30)
	w.add(capped(0, 0, 2, 60), capped(1, 0, 5, 20), heavy(2, 0, 9, 20, 3000))
	w.reset(Head{BaseFee: gweis(1)})
	w.firsts("-kp")
}

// A large transaction that finds no room does not keep a smaller one waiting.
func TestSmallerWaitingComesIn(t *testing.T) {
	w := newWorld(t, narrow(5000, 5000+2*weigh(tx(1, 0, 2))))
	w.baseFee(30)
	w.add(tx(0, 0, 99), heavy(1, 0, 80, 99, 3000), capped(2, 0, 5, 20), heavy(3, 0, 9, 20, 4000))
	w.baseFee(1)
	w.firsts("pppk")
}

// A large waiting transaction that may displace no others keeps no smaller one
// waiting that may.
func TestSmallerWaitingDisplaces(t *testing.T) {
	w := newWorld(t, tiny(4, 5), narrow(6000, 6000))
	w.baseFee(30)
	w.add(tx(0, 0, 50), tx(1, 0, 51), tx(2, 0, 52), capped(3, 0, 2, 60))
	w.add(heavy(4, 0, 9, 20, 3000), capped(5, 0, 8, 20))
	w.reset(Head{BaseFee: gweis(1)})
	w.firsts("ppp-kp")
}

// If more transactions are parked than may be, those that wait for room go too.
func TestWaitingIsCapped(t *testing.T) {
	w := newWorld(t, tiny(1, 1))
	w.baseFee(30)
	w.add(tx(0, 0, 50), capped(1, 0, 5, 20))
	w.baseFee(1)
	w.stands(1, "k")
	w.add(tx(2, 1, 7), tx(2, 0, 99))
	w.firsts("--p")
	w.stands(2, "pk")
}

// If more transactions wait for room than may be parked, the worst one goes,
// whatever its size.
func TestWorstWaitingGoes(t *testing.T) {
	w := newWorld(t, tiny(1, 1), func(c *Config) { c.MaxParked = 2 })
	w.baseFee(30)
	w.add(tx(0, 0, 50), capped(1, 0, 6, 20), heavy(3, 0, 5, 20, 3000))
	w.baseFee(1)
	w.firsts("pk-k")
	w.add(tx(2, 1, 7), tx(2, 0, 99))
	w.stands(2, "pk")
	w.firsts("-kp-")
}

// A transaction that came back needs no room to run again.
func TestReturnedRunsAboveTheCap(t *testing.T) {
	w := newWorld(t, tiny(1, 2))
	w.returned(capped(0, 0, 2, 2))
	w.baseFee(3)
	w.add(tx(1, 0, 8))
	w.baseFee(1)
	w.firsts("pp")
}

// Transactions that wait for room are parked when the floor rises above them.
func TestFloorParksWaiting(t *testing.T) {
	w := newWorld(t, tiny(1, 2), func(c *Config) { c.FloorWindow, c.BlockGasLimit = 1, txGas })
	w.baseFee(8)
	w.add(tx(0, 0, 200), capped(1, 0, 2, 2))
	w.baseFee(0)
	w.firsts("pk")
	for range 12 {
		require.Empty(t, w.tell(blockOf(tx(5, 0, 100))))
	}
	require.Greater(t, w.Stats().Floor, uint64(2*gwei))
}

// A new base fee lets the best come in first: those whose tip has changed, and those
// that pay the floor again.
func TestBaseFeeLetsTheBestIn(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MinGasPrice, c.MaxPending = 10*gwei, 2 })
	w.baseFee(8)
	worse, better := capped(0, 0, 2, 100), capped(1, 0, 4, 11)
	w.add(worse, better)
	w.baseFee(5)
	w.firsts("kk")
	w.add(capped(2, 0, 20, 100))
	w.baseFee(8)
	w.firsts("kp")
}

// A base fee falls, and there is room for some of the transactions that pay it
// now. The best ones come in, and the earliest of equal ones. The others wait
// on, because none of them has to give way.
func TestBaseFeePromotesBest(t *testing.T) {
	for _, first := range []int64{9, 5} {
		w := newWorld(t, tiny(5, 1000))
		w.baseFee(50)
		for i := range 8 {
			w.add(tx(i, 0, []int64{first, 5}[i/4]))
		}
		w.add(tx(8, 0, 1000))
		w.firsts("kkkkkkkkp")
		w.baseFee(1)
		w.firsts("ppppkkkkp")
	}
}

// Transactions that wait for room do not take the room of transactions whose
// predecessor comes back.
func TestRevertKeepsTheRoom(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxPending = 3 })
	w.add(tx(0, 0, 2), tx(0, 1, 2), tx(0, 2, 2))
	block := w.commit(Budget{Count: 1})
	w.add(tx(0, 3, 2), tx(1, 1, 2), tx(1, 0, 9)) // the second of sender 1 waits for room
	w.has(StatusParked, tx(1, 1, 2))
	w.stands(0, "-pp")
	require.Empty(t, w.fails(block.Transactions...))
	w.stands(0, "ppp")
	w.has(StatusParked, tx(1, 1, 2))
}
