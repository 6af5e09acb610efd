package builder_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/journal"
	jamqsubmit "github.com/jamq/jamq/submit"
)

// script is a network whose JAM blocks the test delivers itself, and whose packages end as the
// test says.
type script struct {
	mu     sync.Mutex
	builds int
	sent   []parcel
	slots  map[jamq.HeaderHash]jamq.Slot
	found  jamqsubmit.Recovery

	pack  func(builder.Anchor) error
	send  func(ctx context.Context, number uint64) error
	spoil func(*jamq.RefineContext)
}

// parcel is a package that was sent.
type parcel struct {
	number uint64
	hash   jamq.PackageHash
	at     time.Time
}

var scriptRoot = jamq.Block{Hash: jamq.HeaderHash{'r'}}

func (s *script) Root(context.Context) (jamq.Block, error) { return scriptRoot, nil }

func (s *script) Pack(_ context.Context, at builder.Anchor, _ []byte) (builder.Package, error) {
	s.mu.Lock()
	s.builds++
	fail := s.pack
	slot := s.slots[at.Hash]
	s.mu.Unlock()
	if fail != nil {
		if err := fail(at); err != nil {
			return builder.Package{}, err
		}
	}
	refine := jamq.RefineContext{Anchor: at.Hash, LookupAnchorSlot: slot, Prerequisites: at.Prerequisites}
	if s.spoil != nil {
		s.spoil(&refine)
	}
	return builder.Package{Hash: jamq.PackageHash{byte(at.Number), byte(at.Version)}, Context: refine, Data: []byte{byte(at.Number)}}, nil
}

func (s *script) Send(ctx context.Context, pkg builder.Package, _ jamq.CoreIndex, _ int) error {
	number := uint64(pkg.Data[0])
	s.mu.Lock()
	s.sent = append(s.sent, parcel{number, pkg.Hash, time.Now()})
	fail := s.send
	s.mu.Unlock()
	if fail != nil {
		return fail(ctx, number)
	}
	return nil
}

func (s *script) Follow(ctx context.Context, found jamqsubmit.Recovery, _ jamqsubmit.ChainSink) error {
	s.mu.Lock()
	s.found = found
	s.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

// recovered returns what Follow got.
func (s *script) recovered() jamqsubmit.Recovery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found
}

// set changes what happens to packages.
func (s *script) set(pack func(builder.Anchor) error, send func(context.Context, uint64) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pack, s.send = pack, send
}

// done returns how many packages were made, and the blocks whose packages were sent.
func (s *script) done() (builds int, sent []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.sent {
		sent = append(sent, p.number)
	}
	return s.builds, sent
}

// scripted is a builder on a script.
type scripted struct {
	*builder.Builder[words.Body]
	t       *testing.T
	network *script
	best    jamq.Block
	stop    func() error // ends Run, and returns its error
}

// open opens a builder on a script, runs it, and delivers the block of slot 1. It is stopped at the
// end of the test. The bubble begins at the first slot.
func (s *script) open(t *testing.T, log builder.Log, change func(*builder.Config)) *scripted {
	t.Helper()
	b := s.run(t, log, change)
	b.deliver(jamq.Block{Hash: jamq.HeaderHash{1}, Parent: scriptRoot.Hash, Slot: 1})
	return b
}

// run is open without a block.
func (s *script) run(t *testing.T, log builder.Log, change func(*builder.Config)) *scripted {
	t.Helper()
	time.Sleep(time.Until(jamq.CommonEra()))
	if log == nil {
		log = new(journal.Memory)
	}
	cfg := builder.DefaultConfig(jamq.Tiny())
	if change != nil {
		change(&cfg)
	}
	b, err := builder.Open(t.Context(), cfg, log, builder.Rollup[words.Body](new(words.Saving)), builder.Network(s))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	synctest.Wait()
	return &scripted{Builder: b, t: t, network: s, best: scriptRoot, stop: stop}
}

// deliver delivers a block as the best one.
func (b *scripted) deliver(block jamq.Block) {
	b.t.Helper()
	b.network.mu.Lock()
	if b.network.slots == nil {
		b.network.slots = make(map[jamq.HeaderHash]jamq.Slot)
	}
	b.network.slots[block.Hash] = block.Slot
	b.network.mu.Unlock()
	require.NoError(b.t, b.Import(b.t.Context(), block, block.Hash))
	b.best = block
}

// next delivers a block after the best one.
func (b *scripted) next(slot jamq.Slot) {
	b.t.Helper()
	b.deliver(jamq.Block{Hash: jamq.HeaderHash{2, byte(slot)}, Parent: b.best.Hash, Slot: slot})
}

// make lets the rollup make a block.
func (b *scripted) make(number uint64) {
	b.t.Helper()
	require.NoError(b.t, b.Submit(b.t.Context(), fmt.Appendf(nil, "word %d", number)))
	b.await(number)
}

// await waits until the rollup has applied a block.
func (b *scripted) await(number uint64) {
	b.t.Helper()
	for b.Heads().Pending.Number < number {
		time.Sleep(time.Millisecond)
	}
}
