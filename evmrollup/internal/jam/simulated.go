package jam

import (
	"context"
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
)

// Simulated is a simulated JAM chain in the node's process. The chain begins when the
// builder calls Root. Its packages are real, signed work packages.
type Simulated struct {
	*simnet.Network // nil before
	cfg             jamtest.Config
	codec           *codec.Codec
	genesis         service.Genesis
	pack            func(payload []byte) codec.WorkPackage
	signer          *service.Signer
	head            func() proof.Commitment
	taken           func(header []byte)
}

// Simulate returns a simulated chain whose genesis state contains the rollup's service.
// The service accepts only packages that the signer has signed. The function head
// returns the rollup's newest block. The chain calls taken with each payload that the
// service has received on the final chain.
func Simulate(cfg jamtest.Config, version codec.Version, id jamq.ServiceID, signer *service.Signer, head func() proof.Commitment, taken func(header []byte)) (*Simulated, error) {
	s := &Simulated{cfg: cfg, signer: signer, head: head, taken: taken}
	var err error
	if s.codec, err = codec.New(version, cfg.Spec); err != nil {
		return nil, err
	}
	if s.pack, err = packages(id, version); err != nil {
		return nil, err
	}
	s.genesis, err = Genesis(id, version, signer, proof.Commitment{})
	return s, err
}

// Pack implements builder.Network.
func (s *Simulated) Pack(ctx context.Context, at builder.Anchor, payload []byte) (builder.Package, error) {
	p, err := s.Network.Pack(ctx, at, payload)
	if err != nil {
		return builder.Package{}, err
	}
	work := s.pack(payload)
	work.Context = p.Context
	if err := s.signer.Sign(s.codec, &work); err != nil {
		return builder.Package{}, err
	}
	p.Data, p.Hash, err = s.codec.EncodePackage(&work)
	return p, err
}

// Send implements builder.Network.
func (s *Simulated) Send(_ context.Context, pkg builder.Package, core jamq.CoreIndex, attempt int) error {
	p, err := jamtest.Work(s.codec, pkg.Data)
	if err != nil {
		return err
	}
	return s.Driver().Submit(p, core, attempt)
}

// Root implements builder.Network. The builder calls it after it has restored the
// rollup up to the last final block. The service then continues after this block, and
// the simulated chain begins at the present slot.
func (s *Simulated) Root(ctx context.Context) (_ jamq.Block, err error) {
	s.genesis.Block = s.head()
	if s.cfg.Genesis, err = s.genesis.Entries(); err != nil {
		return jamq.Block{}, err
	}
	s.cfg.StartSlot = jamq.NewSlotClock(s.cfg.Spec).SlotAt(time.Now())
	chain, err := jamtest.New(s.cfg)
	if err != nil {
		return jamq.Block{}, err
	}
	s.Network = simnet.New(chain, s.genesis.Service)
	return s.Network.Root(ctx)
}

// Received implements builder.Receiver.
func (s *Simulated) Received(ctx context.Context) (uint64, error) {
	if s.Network == nil {
		return 0, nil
	}
	return s.Network.Received(ctx)
}

// Spec implements Network.
func (s *Simulated) Spec() jamq.ChainSpec { return s.cfg.Spec }

// Run implements Network.
func (s *Simulated) Run(ctx context.Context) error {
	return s.Network.Run(ctx, func(u jamtest.Update) {
		for _, p := range u.Final {
			if p.Service == s.genesis.Service && p.Authorizer == s.genesis.Authorizer {
				s.taken(p.Payload)
			}
		}
	})
}

// Heads implements Network.
func (s *Simulated) Heads() (best, finalized jamq.Block) { return s.Driver().Heads() }

// Health implements Network. The chain is in the same process and therefore always
// connected.
func (s *Simulated) Health() submit.FeedHealth {
	best, finalized := s.Heads()
	return submit.FeedHealth{Following: true, Best: best.Slot, Finalized: finalized.Slot, Nodes: 1, Wanted: 1}
}

// Close implements Network.
func (s *Simulated) Close() {}

// Prove implements Network.
func (s *Simulated) Prove(_ context.Context, number uint64) (d *proof.Document, t *proof.Trust, err error) {
	s.Driver().View(func(c *jamtest.Chain) {
		if d, err = c.Prove(s.genesis.Service, number, jamtest.ByStorage); err == nil {
			t, err = c.Trust(s.genesis.Service)
		}
	})
	if err != nil {
		// This process has started the simulated JAM chain, so that chain has no proofs for
		// rollup blocks that were final before.
		return nil, nil, fmt.Errorf("%w: the embedded JAM chain has none for block %d: %w", ErrNoProofs, number, err)
	}
	return d, t, nil
}

// Trust implements Network.
func (s *Simulated) Trust(context.Context) (t *proof.Trust, err error) {
	s.Driver().View(func(c *jamtest.Chain) { t, err = c.Trust(s.genesis.Service) })
	return t, err
}

// Handoff implements Network.
func (s *Simulated) Handoff(_ context.Context, set uint64) (h *proof.Handoff, err error) {
	s.Driver().View(func(c *jamtest.Chain) { h, err = c.Handoff(set) })
	if err != nil {
		return nil, fmt.Errorf("%w: no handoff from validator set %d: %w", ErrNoProofs, set, err)
	}
	return h, nil
}
