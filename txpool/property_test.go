package txpool

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var (
	crashSeeds = flag.Uint64("crash.seeds", 2000, "how many seeds TestCrashAtAnyAppend runs")
	crashSeed  = flag.Uint64("crash.seed", 1, "the first seed of TestCrashAtAnyAppend")
)

// play lets a wild host make random moves. Those that are first are most frequent.
func play(t *testing.T, moves func(*wild) [][]func()) {
	rapid.Check(t, func(t *rapid.T) {
		h := newWild(t, rapidly{t})
		all := slices.Concat(moves(h)...)
		for range 60 {
			all[h.roll(len(all), "move")]()
			h.verify()
		}
	})
}

// The invariants hold after every step of any sequence of calls on a small pool.
func TestInvariantsUnderRandomCalls(t *testing.T) {
	play(t, func(h *wild) [][]func() {
		return [][]func(){h.often(), h.ofUsers(), h.ofBlocks(), h.ofSessions(), h.ofTheWorld()}
	})
}

// Sessions, in any order with everything else that happens, take each transaction once and
// in order, and always what a search of all transactions finds.
func TestSessionsUnderRandomCalls(t *testing.T) {
	play(t, func(h *wild) [][]func() {
		return [][]func(){h.often(), h.ofSessions(), h.ofUsers(), h.ofTheWorld(), h.ofBlocks()}
	})
}

// T5: an acknowledged transaction leaves the pool only by inclusion, by a
// replacement of its sender, or by an event that names it and the reason. A
// transaction that comes back from a failed block is never dropped because of a
// cap.
func TestT5NothingAcknowledgedDisappears(t *testing.T) {
	play(t, func(h *wild) [][]func() {
		return [][]func(){h.often(), h.ofBlocks(), h.ofTheWorld(), h.ofUsers(), h.ofSessions()}
	})
}

// A host that does everything right has each transaction pending that could run.
func TestLifecycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newOrderly(t, rapidly{t}, perSender(64))
		moves := h.moves()
		for range 40 {
			moves[h.roll(len(moves), "move")]()
			h.verify()
			h.standing()
		}
	})
}

// The process ends in any write to the log, which has a prefix of it. No
// transaction that the pool has acknowledged is lost, and none is built twice.
func TestCrashAtAnyAppend(t *testing.T) {
	for seed := *crashSeed; seed < *crashSeed+*crashSeeds; seed++ {
		crashRun(t, seed)
	}
}

func crashRun(t *testing.T, seed uint64) {
	defer func() {
		if t.Failed() {
			t.Logf("go test ./txpool -run TestCrashAtAnyAppend -crash.seeds 1 -crash.seed %d", seed)
		}
	}()
	h := newOrderly(t, seeded{rand.New(rand.NewPCG(seed, 0))})
	h.crashes, h.deaf, h.senders = true, true, 3
	h.saves = h.tear
	moves := h.moves()
	for i := range 30 {
		h.survive(moves[h.roll(len(moves), "move")])
		if i%10 == 9 {
			h.survive(h.reopenAll)
		}
		h.verify()
	}
}
