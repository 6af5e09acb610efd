package jam

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder/jip2net"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jip2"
)

// ErrServiceInUse is returned if the rollup's service on a remote chain has
// received packages that this node does not know.
var ErrServiceInUse = errors.New("jam: the service is in use")

// Remote is a chain behind a JAM node's RPC. The storage of the rollup's
// service must have the layout of jamtest/jip2server.
type Remote struct {
	*jip2net.Network
	// Accepted is the number of packages that the service must have received when the
	// rollup begins: 0, or that of an import.
	Accepted uint64
	// Read is the number of the service's packages that are not read any more. A node
	// that begins again sets it to the number of its final blocks.
	Read uint64

	service jamq.ServiceID
	taken   func(payload []byte)
	// value reads the service's storage.
	value func(ctx context.Context, at jamq.HeaderHash, key []byte) ([]byte, error)
	log   *slog.Logger
}

// The gas of the only work item of a package.
const (
	refineGas     = 1_000_000_000
	accumulateGas = 1_000_000
)

// Connect connects to a JAM node at a URL, whose chain follows a version of the Gray
// Paper. taken is called with the payload of each package that the service has received
// on the final chain, from Remote.Read on.
func Connect(ctx context.Context, url string, version codec.Version, service jamq.ServiceID, log *slog.Logger, taken func(payload []byte)) (*Remote, error) {
	client := jip2.DefaultConfig(url)
	client.Logger = log
	inner, err := jip2net.Open(ctx, jip2net.Config{
		Node: client,
		Service: jip2.Service{
			ID: service, Key: jip2server.MarkKey,
			Taken: func(_ jamq.PackageHash, value []byte) (bool, error) { return value != nil, nil },
		},
		Version:  version,
		Received: countIn,
		Package:  codec.OneItem(service, common.Hash{}, common.Hash{}, refineGas, accumulateGas),
	})
	if err != nil {
		return nil, fmt.Errorf("jam: node at %s: %w", url, err)
	}
	value := func(ctx context.Context, at jamq.HeaderHash, key []byte) ([]byte, error) {
		return inner.Client().ServiceValue(ctx, at, service, key)
	}
	return &Remote{Network: inner, service: service, taken: taken, value: value, log: log}, nil
}

// Run implements Network.
func (r *Remote) Run(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Root implements builder.Network. A node that begins refuses a service that another
// node has used.
func (r *Remote) Root(ctx context.Context) (jamq.Block, error) {
	best, err := r.Client().BestBlock(ctx)
	if err != nil {
		return jamq.Block{}, err
	}
	count, err := r.count(ctx, jamq.HeaderHash(best.HeaderHash))
	if err != nil {
		return jamq.Block{}, err
	}
	if count != r.Accepted {
		return jamq.Block{}, fmt.Errorf("%w: service %d has already received %d packages, want %d; use a different service", ErrServiceInUse, r.service, count, r.Accepted)
	}
	return r.Network.Root(ctx)
}

// Follow implements builder.Network.
func (r *Remote) Follow(ctx context.Context, found submit.Recovery, to submit.ChainSink) error {
	return r.Network.Follow(ctx, found, &reader{to, r})
}

// reader reads the packages that the service received whenever finality moves.
type reader struct {
	submit.ChainSink
	remote *Remote
}

// Finalize implements submit.ChainSink. Packages that cannot be read now are
// read the next time.
func (s *reader) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	if err := s.remote.readService(ctx, hash); err != nil && ctx.Err() == nil {
		s.remote.log.Warn("the service could not be read", "err", err)
	}
	return s.ChainSink.Finalize(ctx, hash)
}

func (r *Remote) readService(ctx context.Context, at jamq.HeaderHash) error {
	count, err := r.count(ctx, at)
	if err != nil {
		return err
	}
	for ; r.Read < count; r.Read++ {
		entry, err := r.value(ctx, at, jip2server.EntryKey(r.Read))
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
func (r *Remote) count(ctx context.Context, at jamq.HeaderHash) (uint64, error) {
	return countIn(func(key []byte) ([]byte, error) { return r.value(ctx, at, key) })
}

// countIn reads the number of packages that a service has received from its storage.
func countIn(read func(key []byte) ([]byte, error)) (uint64, error) {
	value, err := read(jip2server.CountKey())
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: a count of %d bytes, want 8", jip2.ErrMalformed, len(value))
	}
	return binary.LittleEndian.Uint64(value), nil
}

// errJIP2 is returned for a remote chain. Its service need not commit, and JIP-2 does
// not return the validators' keys.
var errJIP2 = fmt.Errorf("%w: refnode makes none on a chain behind JIP-2; package canonical/proof/jip2proof makes them from the answers of a JAM node that has JIP-2's BEEFY methods", ErrNoProofs)

// Prove implements Network.
func (r *Remote) Prove(context.Context, uint64) (*proof.Document, error) { return nil, errJIP2 }

// Trust implements Network.
func (r *Remote) Trust(context.Context) (*proof.Trust, error) { return nil, errJIP2 }
