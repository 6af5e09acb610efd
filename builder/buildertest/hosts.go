package buildertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/submit"
)

// Fault is a mistake that a host makes outside its rollup: in its network, its log
// or its configuration. Such a mistake can execute operations twice, so the builder
// stops with an error that names the mistake. [Provoke] makes the mistake in a
// test.
type Fault string

const (
	// NoReported is the fault that the network forgets the field Reported: its blocks contain
	// no reports and no list of the accumulated packages. Run then returns
	// builder.ErrEvidence, and the error names the field.
	NoReported Fault = "Reported is empty"
	// NoAvailable is the fault that the network forgets the field Available: its blocks
	// contain no available cores and no list of the accumulated packages. Run then returns
	// builder.ErrEvidence, and the error names the field.
	NoAvailable Fault = "Available is empty"
	// NoAccumulated is the fault that the network delivers an empty list of accumulated
	// packages with every block. Run then returns builder.ErrEvidence, and the error names the
	// field of jamq.Block.
	NoAccumulated Fault = "Accumulated is empty"
	// EmptyLog is the fault that the builder is opened with an empty log although its service
	// is already in use, for example because the log is in a wrong directory. Open then
	// returns builder.ErrServiceInUse.
	EmptyLog Fault = "the log is empty"
	// OtherChain is a network on a different JAM chain than the log. It delivers the blocks of
	// its chain without regard to the blocks that the builder knows. Run returns an error that
	// wraps chainview.ErrMissingParent.
	OtherChain Fault = "the network is on another chain"
	// OtherSpec is a configuration for a chain whose constants differ from those of the
	// network's chain. Open returns builder.ErrInvalidConfig.
	OtherSpec Fault = "the configuration is for another chain"
)

// Faults returns all faults that [Provoke] can make.
func Faults() []Fault {
	return []Fault{NoReported, NoAvailable, NoAccumulated, EmptyLog, OtherChain, OtherSpec}
}

// Provoke runs a rollup in a host that makes the given mistake, and returns the error of
// Open or Run. It uses a simulated JAM chain with slots of 50 ms. It returns nil if the
// builder still runs after ten seconds of virtual time, which means that the builder has
// not noticed the mistake.
func Provoke[B any](t *testing.T, c Case[B], fault Fault) (stopped error) {
	t.Helper()
	bubble.Run(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var chains sync.WaitGroup
		defer chains.Wait()
		defer cancel()
		h := host[B]{Case: c.in(t.TempDir()), log: new(journal.Memory), start: func(seed uint64) (*simnet.Network, error) {
			network, err := simnet.Tiny(50*time.Millisecond, service, func(c *jamtest.Config) { c.Seed = seed })
			if err == nil {
				chains.Go(func() { _ = network.Run(ctx, nil) })
			}
			return network, err
		}}
		stopped = h.provoke(ctx, fault)
	})
	return stopped
}

// host is a program that runs a builder.
type host[B any] struct {
	Case[B]
	log *journal.Memory
	// start starts a JAM chain.
	start func(seed uint64) (*simnet.Network, error)
	// submitted is the number of operations that were submitted so far.
	submitted int
}

// provoke runs a builder in a host with a fault, and returns the builder's error.
func (h *host[B]) provoke(ctx context.Context, fault Fault) error {
	chain, err := h.start(1)
	if err != nil {
		return err
	}
	spec, network := chain.Spec(), builder.Network(chain)
	// These faults need a log that was already in use, so run a builder without the
	// fault first.
	if fault == EmptyLog || fault == OtherChain {
		first := func(heads canonical.Heads) bool { return heads.Finalized.Number > 0 }
		if err := h.run(ctx, spec, chain, first); err != nil {
			return fmt.Errorf("buildertest: a builder without a fault: %w", err)
		}
	}
	switch fault {
	case EmptyLog:
		h.log = new(journal.Memory)
	case OtherChain:
		other, err := h.start(2)
		if err != nil {
			return err
		}
		network = changed{other, func(*jamq.Block) {}}
	case OtherSpec:
		spec = jamq.Full()
	default:
		network = changed{chain, fault.empty}
	}
	err = h.run(ctx, spec, network, func(canonical.Heads) bool { return false })
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil // run has stopped the builder, at its deadline
	}
	return err
}

// run runs a builder until wanted returns true, or for at most ten seconds.
func (h *host[B]) run(ctx context.Context, spec jamq.ChainSpec, network builder.Network, wanted func(canonical.Heads) bool) error {
	const (
		longest = 10 * time.Second
		several = 5 // operations, so that there is more than one block
	)
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	cfg := builder.DefaultConfig(spec)
	rollup := h.New()
	defer func() { _ = closeRollup(rollup) }()
	b, err := builder.Open(ctx, cfg, h.log, rollup, network)
	if err != nil {
		return err
	}
	for range several {
		_ = b.Submit(ctx, h.Operation(h.submitted)) // it may be refused
		h.submitted++
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- b.Run(running) }()
	seen := b.Await(ctx, wanted)
	stop()
	if stopped := <-ran; seen != nil {
		return stopped
	}
	return nil
}

// empty removes the contents of the field that the faulty network does not fill.
func (f Fault) empty(b *jamq.Block) {
	b.AccumulatedKnown = f == NoAccumulated
	b.Accumulated = nil
	switch f {
	case NoReported:
		b.Reported = nil
	case NoAvailable:
		b.Available = nil
	}
}

// changed is a network that changes the blocks of its node before it delivers them. It
// delivers all blocks, even those that the builder already knows.
type changed struct {
	*simnet.Network
	change func(*jamq.Block)
}

// Follow implements builder.Network.
func (n changed) Follow(ctx context.Context, _ submit.Recovery, to submit.ChainSink) error {
	return n.Network.Follow(ctx, submit.Recovery{}, changing{to, n.change})
}

type changing struct {
	submit.ChainSink
	change func(*jamq.Block)
}

// Import implements submit.ChainSink.
func (s changing) Import(ctx context.Context, block jamq.Block, best jamq.HeaderHash) error {
	s.change(&block)
	return s.ChainSink.Import(ctx, block, best)
}
