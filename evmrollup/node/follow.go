package node

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup"
	"github.com/jamq/jamq/evmrollup/internal/jam"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit"
)

// connect connects to the JAM chain, and makes the node use that chain's constants.
func (n *Node) connect(ctx context.Context) (err error) {
	signer, err := service.NewSigner(n.cfg.Version, n.cfg.Key)
	if err != nil {
		return err
	}
	if n.cfg.JAMURL == "" {
		head := func() proof.Commitment {
			n.service.begin(n.Head(), 0)
			return evmrollup.Header(n.Head().Block, common.Hash{})
		}
		n.jam, err = jam.Simulate(n.simulation(), n.cfg.Version, n.cfg.Service, signer, head, n.service.taken)
	} else {
		var remote *jam.Remote
		if remote, err = jam.Connect(ctx, n.cfg.JAMURL, n.cfg.Version, n.cfg.Service, signer, n.log, n.service.taken); err == nil {
			remote.Origin = evmrollup.Header(n.BlockByNumber(n.Origin()).Block, common.Hash{})
		}
		n.jam = remote
	}
	if err == nil {
		n.cfg.Spec = n.jam.Spec()
	}
	return err
}

func (n *Node) simulation() jamtest.Config {
	cfg := n.cfg.JAM
	cfg.Spec = n.cfg.Spec
	return cfg
}

// seen is the JAM chain as the builder sees it. The node wraps the chain in this type
// in order to learn of each JAM block that the builder receives.
type seen struct {
	jam.Network
	node *Node
}

// Follow implements builder.Network.
func (s seen) Follow(ctx context.Context, found submit.Recovery, to submit.ChainSink) error {
	if remote, ok := s.Network.(*jam.Remote); ok {
		n := s.node
		remote.Read = n.Stored()
		n.service.begin(n.BlockByNumber(n.Stored()), n.Stored())
	}
	return s.Network.Follow(ctx, found, &sink{to, s.node})
}

// sink passes each update of the JAM chain to the builder, and then to the observer.
type sink struct {
	submit.ChainSink
	node *Node
}

// Import implements submit.ChainSink.
func (s *sink) Import(ctx context.Context, b jamq.Block, best jamq.HeaderHash) error {
	s.node.SlotBegan()
	if err := s.ChainSink.Import(ctx, b, best); err != nil {
		return fmt.Errorf("node: JAM block of slot %d: %w", b.Slot, err)
	}
	s.node.observer.Import(b, best)
	return nil
}

// Finalize implements submit.ChainSink.
func (s *sink) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	if err := s.ChainSink.Finalize(ctx, hash); err != nil {
		return fmt.Errorf("node: finalized JAM block: %w", err)
	}
	s.node.observer.Finalize(hash)
	return nil
}
