//go:build unix

package main

import (
	"fmt"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/wait"
)

// The faults that the chain has all the time.
const (
	usualLoss = "0.1"
	usualSkip = "0.1"
)

// soakLag is by how many blocks finality is behind. It bounds the depth of
// reorganizations.
const soakLag = 5

// trouble is one thing that goes wrong and is repaired.
type trouble struct {
	name string
	// strike makes it happen, and repairs it.
	strike func(s *soakRun)
}

// troubles are all of them. One round of the soak test has each once.
var troubles = []trouble{
	{"the builder is killed", func(s *soakRun) { s.killBuilder(s.some(10)) }},
	{"the JAM node is killed", func(s *soakRun) { s.killJAM(s.some(2)*s.allRetries() + s.some(20)) }},
	{"both are killed", killBoth},
	{"the JAM node stands still for longer than all retries", standStill},
	{"all submissions are lost until blocks fail", loseAll},
	{"finality stops for longer than L", stopFinality},
	{"reorganizations", reorganize},
	{"most slots are skipped", skipSlots},
}

// killBuilder kills the builder, and starts it again after some slots.
func (s *soakRun) killBuilder(slots int) {
	s.logf("kill -9 builder for %d slots", slots)
	s.kills++
	s.builder.kill()
	s.slots(slots)
	s.builder.start()
}

// killJAM kills the JAM node, and starts it again after some slots, which are
// skipped ones of its chain.
func (s *soakRun) killJAM(slots int) {
	s.logf("kill -9 JAM node for %d slots", slots)
	s.kills++
	s.jam.kill()
	s.slots(slots)
	s.jam.start()
}

func killBoth(s *soakRun) {
	s.logf("kill -9 both")
	s.kills += 2
	s.builder.kill()
	s.jam.kill()
	s.slots(s.some(20))
	s.jam.start()
	s.builder.start()
}

// allRetries returns how many slots the sends of one package take at most.
func (s *soakRun) allRetries() int {
	queue := bundlequeue.DefaultConfig(s.spec)
	return int(queue.BackoffMax*time.Duration(queue.MaxSubmitRetries+1)) / int(s.spec.SlotDuration)
}

// standStill stops the JAM node's process until the builder has given up
// every send of its current packages. The connections stay open meanwhile.
func standStill(s *soakRun) {
	slots := s.allRetries() + s.some(20)
	s.logf("SIGSTOP for %d slots", slots)
	require.NoError(s.t, s.jam.process.Process.Signal(syscall.SIGSTOP))
	if s.some(2) == 0 { // the builder waits for the node at its start
		s.logf("kill -9 builder meanwhile")
		s.kills++
		s.builder.kill()
		s.builder.launch()
	}
	s.slots(slots)
	require.NoError(s.t, s.jam.process.Process.Signal(syscall.SIGCONT))
	s.builder.awaitListening()
}

// loseAll loses every submission until blocks are thrown away. Mostly the builder
// is killed when the queue gives up the first bundle.
func loseAll(s *soakRun) {
	s.jam.command("loss 1")
	failed, log := s.failedBundles(), s.builder.out.Len()
	s.await("a bundle fails", func() bool { return s.failedBundles() > failed })
	if s.some(3) > 0 {
		s.slots(s.some(6))
		s.killBuilder(s.some(4))
	}
	s.await("blocks are thrown away", func() bool { return thrownAwayLine.MatchString(s.builder.out.after(log)) })
	s.slots(s.some(20))
	s.jam.command("loss " + usualLoss)
}

// stopFinality stops finality until no new package can have a lookup anchor.
func stopFinality(s *soakRun) {
	s.jam.command("finality stop")
	s.slots(int(s.spec.MaxLookupAnchorAge) + 2 + s.some(12))
	if s.some(2) == 0 {
		s.killBuilder(s.some(4))
	}
	s.jam.command("finality go")
}

// reorganize lets the best chain lose up to soakLag blocks, three times.
func reorganize(s *soakRun) {
	for range 3 {
		s.jam.command(fmt.Sprintf("reorg %d", 1+s.some(soakLag)))
		if s.some(3) == 0 {
			s.killBuilder(s.some(4))
		}
		s.slots(soakLag + 2 + s.some(5))
	}
}

func skipSlots(s *soakRun) {
	s.jam.command("skip 0.85")
	s.slots(20 + s.some(30))
	s.jam.command("skip " + usualSkip)
}

// failedBundles returns how many bundles the queue has given up, 0 if the node
// cannot be asked.
func (s *soakRun) failedBundles() uint64 {
	if status := s.status(); status != nil {
		return status.Transitions[bundlequeue.FailedState.String()]
	}
	return 0
}

// some returns a number below n from the seed.
func (s *soakRun) some(n int) int { return s.random.IntN(n) }

// slots lets the time of some slots pass.
func (s *soakRun) slots(n int) {
	wait.Pace(s.ctx, time.Duration(n)*s.spec.SlotDuration)
	require.NoError(s.t, s.ctx.Err(), "the time of the test is over")
}

// soakSpec is the chain that jamnode simulates by default, with short slots.
func soakSpec() jamq.ChainSpec {
	spec := jamq.Tiny()
	spec.SlotDuration = 20 * time.Millisecond
	return spec
}
