package node

import (
	"context"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/submit"
)

// jamChain is the JAM chain of a node: embedded, or behind a JAM node's RPC.
type jamChain interface {
	submit.ChainFeed
	// spec returns the constants of the chain.
	spec() jamq.ChainSpec
	// heads returns the best and the finalized block.
	heads() (best, finalized jamBlock)
	// refine returns the refine context of a package with the given anchor,
	// which must be a delivered block.
	refine(ctx context.Context, anchor jamq.HeaderHash, needs []jamq.PackageHash) (jamq.RefineContext, error)
	// submit sends a package to a guarantor of a core, to a different one for
	// each attempt.
	submit(ctx context.Context, core jamq.CoreIndex, attempt int, p *workPackage) error
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

// workPackage is an encoded package with the data that the two kinds of chains
// need.
type workPackage struct {
	hash         jamq.PackageHash
	context      jamq.RefineContext
	raw, payload []byte
}

// embedded is a simulated chain in the node's process.
type embedded struct {
	driver  *jamtest.Driver
	start   jamq.Block
	consts  jamq.ChainSpec
	service jamq.ServiceID
	final   func(payload []byte) // called for each final package
}

// newEmbedded starts the chain at the current slot.
func newEmbedded(cfg jamtest.Config, service jamq.ServiceID, final func(payload []byte)) (*embedded, error) {
	cfg.StartSlot = jamq.NewSlotClock(cfg.Spec).SlotAt(time.Now())
	cfg.Commit = commit
	chain, err := jamtest.New(cfg)
	if err != nil {
		return nil, err
	}
	return &embedded{start: chain.Best(), driver: jamtest.NewDriver(chain), consts: cfg.Spec, service: service, final: final}, nil
}

// Follow implements submit.ChainFeed.
func (e *embedded) Follow(ctx context.Context, to submit.ChainSink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := e.driver.Run(ctx, func(u jamtest.Update) {
		if err := e.deliver(ctx, to, u); err != nil {
			cancel(err)
		}
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (e *embedded) deliver(ctx context.Context, to submit.ChainSink, u jamtest.Update) error {
	for _, b := range u.Imported {
		if err := to.Import(ctx, b, u.Best); err != nil {
			return err
		}
	}
	for _, p := range u.Final {
		e.final(p.Payload)
	}
	return to.Finalize(ctx, u.Finalized)
}

func (e *embedded) spec() jamq.ChainSpec { return e.consts }
func (e *embedded) close()               {}

func (e *embedded) heads() (best, finalized jamBlock) {
	b, f := e.driver.Heads()
	return jamBlock{b.Hash, b.Slot}, jamBlock{f.Hash, f.Slot}
}

func (e *embedded) refine(_ context.Context, at jamq.HeaderHash, needs []jamq.PackageHash) (jamq.RefineContext, error) {
	recent, lookup := e.driver.Anchors()
	return anchor.Pick(recent, at, lookup, needs)
}

func (e *embedded) submit(_ context.Context, core jamq.CoreIndex, attempt int, p *workPackage) error {
	return e.driver.Submit(jamtest.Package{Hash: p.hash, Context: p.context, Service: e.service, Payload: p.payload}, core, attempt)
}
