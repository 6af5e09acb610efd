package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/jip2"
)

// ErrServiceInUse is returned if the rollup's service on a remote chain has
// received packages that this node does not know.
var ErrServiceInUse = errors.New("node: the service is in use")

// remote is a chain behind a JAM node's RPC. The storage of the rollup's
// service must have the layout of jamtest/jip2server.
type remote struct {
	client  *jip2.Client
	feed    *jip2.Feed
	service jamq.ServiceID
	final   func(payload []byte)
	consts  jamq.ChainSpec
	read    uint64 // packages that were passed on
	log     *slog.Logger
}

// connectTime is the time limit for the connection to a JAM node at the start.
const connectTime = 30 * time.Second

// newRemote connects to a node. open must be called before anything else.
func newRemote(url string, service jamq.ServiceID, log *slog.Logger, final func(payload []byte)) (*remote, error) {
	cfg := jip2.DefaultConfig(url)
	cfg.Logger = log
	client, err := jip2.Open(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	r := &remote{client: client, service: service, log: log, final: final}
	parameters, err := client.Parameters(ctx)
	if err == nil {
		r.consts, err = parameters.Spec("jip2")
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("node: JAM node at %s: %w", url, err)
	}
	return r, nil
}

// finalized returns the newest final block.
func (r *remote) finalized(ctx context.Context) (jamq.Block, error) {
	head, err := r.client.FinalizedBlock(ctx)
	return jamq.Block{Hash: jamq.HeaderHash(head.HeaderHash), Slot: head.Slot}, err
}

// open starts to follow the chain, at the best block of a queue that was found
// in the data directory, or at the newest final block.
func (r *remote) open(ctx context.Context, found *submit.Recovery) (err error) {
	cfg := jip2.FeedConfig{
		Logger: r.log,
		Service: jip2.Service{
			ID: r.service, Key: jip2server.MarkKey,
			Taken: func(_ jamq.PackageHash, value []byte) (bool, error) { return value != nil, nil },
		},
	}
	if found != nil {
		cfg.Root = jamq.Block{Hash: found.Finalized.Hash, Slot: found.Finalized.Slot}
		cfg.Best = found.Best.Hash
	}
	if r.feed, err = jip2.OpenFeed(ctx, r.client, cfg); err != nil {
		return err
	}
	if found == nil || !found.Found {
		return r.checkUnused(ctx)
	}
	for _, out := range found.Out {
		known := jip2.Known{Package: out.Package, Context: out.Context, Core: out.Core}
		for _, at := range []struct {
			point anchor.Point
			into  *jamq.Slot
		}{{out.Reported, &known.Reported}, {out.Available, &known.Available}, {out.Accumulated, &known.Accumulated}} {
			if !at.point.IsZero() && at.point.Height <= found.Finalized.Height {
				*at.into = at.point.Slot
			}
		}
		r.feed.Restore(known)
	}
	return nil
}

// checkUnused refuses a service that another node has used.
func (r *remote) checkUnused(ctx context.Context) error {
	best, err := r.client.BestBlock(ctx)
	if err != nil {
		return err
	}
	count, err := r.count(ctx, jamq.HeaderHash(best.HeaderHash))
	if err == nil && count > 0 {
		err = fmt.Errorf("%w: service %d has already received %d packages; use a different service", ErrServiceInUse, r.service, count)
	}
	return err
}

// count returns the number of packages that the service has received at a
// block.
func (r *remote) count(ctx context.Context, at jamq.HeaderHash) (uint64, error) {
	value, err := r.client.ServiceValue(ctx, at, r.service, jip2server.CountKey())
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: a count of %d bytes, want 8", jip2.ErrMalformed, len(value))
	}
	return binary.LittleEndian.Uint64(value), nil
}

// Follow implements submit.ChainFeed.
func (r *remote) Follow(ctx context.Context, to submit.ChainSink) error {
	return r.feed.Follow(ctx, &reader{ChainSink: to, remote: r})
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
		entry, err := r.client.ServiceValue(ctx, at, r.service, jip2server.EntryKey(r.read))
		if err != nil {
			return err
		}
		if len(entry) < 32 {
			return fmt.Errorf("%w: an entry of %d bytes, want at least 32", jip2.ErrMalformed, len(entry))
		}
		r.final(entry[32:])
	}
	return nil
}

func (r *remote) spec() jamq.ChainSpec { return r.consts }
func (r *remote) close()               { r.client.Close() }

func (r *remote) heads() (best, finalized jamBlock) {
	b, f := r.feed.Heads()
	return jamBlock{jamq.HeaderHash(b.HeaderHash), b.Slot}, jamBlock{jamq.HeaderHash(f.HeaderHash), f.Slot}
}

func (r *remote) refine(ctx context.Context, at jamq.HeaderHash, needs []jamq.PackageHash) (jamq.RefineContext, error) {
	return r.feed.Context(ctx, at, needs)
}

// submit leaves the choice of the guarantor to the JAM node.
func (r *remote) submit(ctx context.Context, core jamq.CoreIndex, _ int, p *workPackage) error {
	return r.feed.Submit(ctx, jip2.Submission{Core: core, Hash: p.hash, Context: p.context, Package: p.raw})
}
