package jam

import (
	"context"
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit"
)

// Simulated is a simulated chain in the node's process.
type Simulated struct {
	*simnet.Network
	service jamq.ServiceID
	taken   func(payload []byte)
}

// Simulate begins a chain at the current slot. taken is called with each payload that
// the service has received on the final chain.
func Simulate(cfg jamtest.Config, id jamq.ServiceID, taken func(payload []byte)) (*Simulated, error) {
	cfg.StartSlot = jamq.NewSlotClock(cfg.Spec).SlotAt(time.Now())
	cfg.Commit = func(p jamtest.Package) (proof.Commitment, bool) {
		c, err := service.DecodeHeader(p.Payload)
		return c, err == nil
	}
	chain, err := jamtest.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Simulated{simnet.New(chain, id), id, taken}, nil
}

// Run implements Network.
func (s *Simulated) Run(ctx context.Context) error {
	return s.Network.Run(ctx, func(u jamtest.Update) {
		for _, p := range u.Final {
			s.taken(p.Payload)
		}
	})
}

// Heads implements Network.
func (s *Simulated) Heads() (best, finalized jamq.Block) { return s.Driver().Heads() }

// Health implements Network. A chain in this process is always connected.
func (s *Simulated) Health() submit.FeedHealth {
	best, finalized := s.Heads()
	return submit.FeedHealth{Following: true, Best: best.Slot, Finalized: finalized.Slot, Nodes: 1, Wanted: 1}
}

// Close implements Network.
func (s *Simulated) Close() {}

// Prove implements Network.
func (s *Simulated) Prove(_ context.Context, number uint64) (d *proof.Document, err error) {
	s.Driver().View(func(c *jamtest.Chain) { d, err = c.Prove(s.service, number, jamtest.ByStorage) })
	if err != nil {
		// The chain began with this process; blocks that were final before are not on it.
		return nil, fmt.Errorf("%w: the embedded JAM chain has none for block %d: %w", ErrNoProofs, number, err)
	}
	return d, nil
}

// Trust implements Network.
func (s *Simulated) Trust(context.Context) (t *proof.Trust, err error) {
	s.Driver().View(func(c *jamtest.Chain) { t, err = c.Trust(s.service) })
	return t, err
}
