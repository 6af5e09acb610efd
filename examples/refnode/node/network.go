package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/jip2net"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/examples/refnode/evmrollup"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jip2"
)

// network is the JAM chain of a node: embedded, or behind a JAM node's RPC.
type network interface {
	builder.Network
	// Spec returns the constants of the chain.
	Spec() jamq.ChainSpec
	// run drives an embedded chain until ctx ends.
	run(ctx context.Context) error
	// heads returns the best and the finalized block.
	heads() (best, finalized jamBlock)
	// prove returns the JAM part of the proof of a final rollup block, and
	// trust the trust to verify it. Errors wrap ErrNoProofs.
	prove(ctx context.Context, number uint64) (*proof.Document, error)
	trust(ctx context.Context) (*proof.Trust, error)
	close()
}

// jamBlock identifies a JAM block.
type jamBlock struct {
	hash jamq.HeaderHash
	slot jamq.Slot
}

// openNetwork connects to the JAM chain. taken is called with each payload that the
// rollup's service has received on the final chain.
func openNetwork(cfg *Config, log *slog.Logger, taken func(payload []byte)) (network, error) {
	if cfg.JAMURL == "" {
		return newEmbedded(cfg, taken)
	}
	return newRemote(cfg, log, taken)
}

// embedded is a simulated chain in the node's process.
type embedded struct {
	*simnet.Network
	service jamq.ServiceID
	taken   func(payload []byte)
}

// newEmbedded starts the chain at the current slot.
func newEmbedded(cfg *Config, taken func(payload []byte)) (*embedded, error) {
	jam := cfg.JAM
	jam.Spec = cfg.Spec
	if cfg.Lab {
		jam.FinalityLag = max(jam.FinalityLag, labFinality)
	}
	jam.StartSlot = jamq.NewSlotClock(jam.Spec).SlotAt(time.Now())
	jam.Commit = func(p jamtest.Package) (proof.Commitment, bool) { return evmrollup.Commit(p.Payload) }
	chain, err := jamtest.New(jam)
	if err != nil {
		return nil, err
	}
	return &embedded{simnet.New(chain, cfg.Service), cfg.Service, taken}, nil
}

func (e *embedded) run(ctx context.Context) error {
	return e.Run(ctx, func(u jamtest.Update) {
		for _, p := range u.Final {
			e.taken(p.Payload)
		}
	})
}

func (e *embedded) heads() (best, finalized jamBlock) {
	b, f := e.Driver().Heads()
	return jamBlock{b.Hash, b.Slot}, jamBlock{f.Hash, f.Slot}
}

func (e *embedded) close() {}

// ErrServiceInUse is returned if the rollup's service on a remote chain has
// received packages that this node does not know.
var ErrServiceInUse = errors.New("node: the service is in use")

// remote is a chain behind a JAM node's RPC. The storage of the rollup's
// service must have the layout of jamtest/jip2server.
type remote struct {
	*jip2net.Network
	service jamq.ServiceID
	taken   func(payload []byte)
	read    uint64 // packages that were passed on
	log     *slog.Logger
}

// connectTime is the time limit for the connection to a JAM node at the start.
const connectTime = 30 * time.Second

// The gas of the only work item of a package.
const (
	refineGas     = 1_000_000_000
	accumulateGas = 1_000_000
)

func newRemote(cfg *Config, log *slog.Logger, taken func(payload []byte)) (*remote, error) {
	client := jip2.DefaultConfig(cfg.JAMURL)
	client.Logger = log
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	inner, err := jip2net.Open(ctx, jip2net.Config{
		Node: client,
		Service: jip2.Service{
			ID: cfg.Service, Key: jip2server.MarkKey,
			Taken: func(_ jamq.PackageHash, value []byte) (bool, error) { return value != nil, nil },
		},
		Version: codec.V072,
		Package: jip2net.OneItem(cfg.Service, common.Hash{}, common.Hash{}, refineGas, accumulateGas),
	})
	if err != nil {
		return nil, fmt.Errorf("node: JAM node at %s: %w", cfg.JAMURL, err)
	}
	return &remote{Network: inner, service: cfg.Service, taken: taken, log: log}, nil
}

func (r *remote) run(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (r *remote) heads() (best, finalized jamBlock) {
	b, f := r.Heads()
	return jamBlock{b.Hash, b.Slot}, jamBlock{f.Hash, f.Slot}
}

func (r *remote) close() { r.Close() }

// Root implements builder.Network. A node that begins refuses a service that another
// node has used.
func (r *remote) Root(ctx context.Context) (jamq.Block, error) {
	best, err := r.Client().BestBlock(ctx)
	if err != nil {
		return jamq.Block{}, err
	}
	count, err := r.count(ctx, jamq.HeaderHash(best.HeaderHash))
	if err != nil {
		return jamq.Block{}, err
	}
	if count > 0 {
		return jamq.Block{}, fmt.Errorf("%w: service %d has already received %d packages; use a different service", ErrServiceInUse, r.service, count)
	}
	return r.Network.Root(ctx)
}

// Follow implements builder.Network.
func (r *remote) Follow(ctx context.Context, found submit.Recovery, to submit.ChainSink) error {
	return r.Network.Follow(ctx, found, &reader{to, r})
}

// reader reads the packages that the service received whenever finality moves.
type reader struct {
	submit.ChainSink
	remote *remote
}

// Finalize implements submit.ChainSink. Packages that cannot be read now are
// read the next time.
func (s *reader) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	if err := s.remote.readService(ctx, hash); err != nil && ctx.Err() == nil {
		s.remote.log.Warn("the service could not be read", "err", err)
	}
	return s.ChainSink.Finalize(ctx, hash)
}

func (r *remote) readService(ctx context.Context, at jamq.HeaderHash) error {
	count, err := r.count(ctx, at)
	if err != nil {
		return err
	}
	for ; r.read < count; r.read++ {
		entry, err := r.Client().ServiceValue(ctx, at, r.service, jip2server.EntryKey(r.read))
		if err != nil {
			return err
		}
		if len(entry) < 32 {
			return fmt.Errorf("%w: an entry of %d bytes, want at least 32", jip2.ErrMalformed, len(entry))
		}
		r.taken(entry[32:])
	}
	return nil
}

// count returns the number of packages that the service has received at a
// block.
func (r *remote) count(ctx context.Context, at jamq.HeaderHash) (uint64, error) {
	value, err := r.Client().ServiceValue(ctx, at, r.service, jip2server.CountKey())
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: a count of %d bytes, want 8", jip2.ErrMalformed, len(value))
	}
	return binary.LittleEndian.Uint64(value), nil
}

// seen is the chain of a node, which looks at what the builder gets.
type seen struct {
	network
	node *Node
}

// Follow implements builder.Network.
func (s seen) Follow(ctx context.Context, found submit.Recovery, to submit.ChainSink) error {
	return s.network.Follow(ctx, found, &sink{to, s.node})
}

// sink passes on the updates of the JAM chain.
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
	s.node.live.Import(b, best)
	return nil
}

// Finalize implements submit.ChainSink.
func (s *sink) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	if err := s.ChainSink.Finalize(ctx, hash); err != nil {
		return fmt.Errorf("node: finalized JAM block: %w", err)
	}
	s.node.live.Finalize(hash)
	return nil
}
