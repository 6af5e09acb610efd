package jam

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder/jip2net"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jip2"
)

// ErrServiceInUse is returned if the rollup's service on a remote chain has blocks that
// this node does not know, and ErrOtherRollup if it was installed for another rollup.
var (
	ErrServiceInUse = errors.New("jam: the service is in use")
	ErrOtherRollup  = errors.New("jam: the service is of another rollup")
)

// Remote is a chain behind a JAM node's RPC, whose genesis state has the rollup's service.
type Remote struct {
	*jip2net.Network
	// Origin is the block after which the rollup begins: block 0, or the last one of an
	// import. It must be the last one of the service then.
	Origin proof.Commitment
	// Read is the number of the last block whose entry is not read any more. A node that
	// begins again sets it to that of its last final block.
	Read uint64

	id    jamq.ServiceID
	taken func(header []byte)
	// value reads the service's storage.
	value func(ctx context.Context, at jamq.HeaderHash, key []byte) ([]byte, error)
	log   *slog.Logger
}

// Genesis returns the service of the rollup in the genesis state of a JAM chain behind an
// RPC, after a block. It accepts packages as Connect makes them.
func Genesis(id jamq.ServiceID, version codec.Version, block proof.Commitment) service.Genesis {
	return service.Genesis{Service: id, Version: version, Authorizer: new(codec.WorkPackage).Authorizer(), Block: block}
}

// The gas of the only work item of a package.
const (
	refineGas     = 1_000_000_000
	accumulateGas = 1_000_000
)

// Connect connects to a JAM node at a URL, whose chain follows a version of the Gray
// Paper. taken is called with the header of each block that the service has applied on
// the final chain, from Remote.Read on.
func Connect(ctx context.Context, url string, version codec.Version, id jamq.ServiceID, log *slog.Logger, taken func(header []byte)) (*Remote, error) {
	client := jip2.DefaultConfig(url)
	client.Logger = log
	code, err := service.Blob(version)
	if err != nil {
		return nil, err
	}
	inner, err := jip2net.Open(ctx, jip2net.Config{
		Node: client,
		Service: jip2.Service{
			ID: id, Key: service.MarkKey,
			Taken: func(_ jamq.PackageHash, value []byte) (bool, error) { return value != nil, nil },
		},
		Version: version,
		Received: func(read func(key []byte) ([]byte, error)) (uint64, error) {
			last, err := lastIn(read)
			return last.Number, err
		},
		Package: codec.OneItem(id, blake2b.Sum256(code), common.Hash{}, refineGas, accumulateGas),
	})
	if err != nil {
		return nil, fmt.Errorf("jam: node at %s: %w", url, err)
	}
	value := func(ctx context.Context, at jamq.HeaderHash, key []byte) ([]byte, error) {
		return inner.Client().ServiceValue(ctx, at, id, key)
	}
	return &Remote{Network: inner, id: id, taken: taken, value: value, log: log}, nil
}

// Run implements Network.
func (r *Remote) Run(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Root implements builder.Network. A node that begins refuses a service that another
// node has used, or that is of another rollup.
func (r *Remote) Root(ctx context.Context) (jamq.Block, error) {
	best, err := r.Client().BestBlock(ctx)
	if err != nil {
		return jamq.Block{}, err
	}
	last, err := r.last(ctx, jamq.HeaderHash(best.HeaderHash))
	switch {
	case err != nil:
		return jamq.Block{}, err
	case last.Number > r.Origin.Number:
		return jamq.Block{}, fmt.Errorf("%w: service %d has block %d already, want %d; use a different service", ErrServiceInUse, r.id, last.Number, r.Origin.Number)
	case last.Number != r.Origin.Number || last.PostRoot != r.Origin.PostRoot:
		return jamq.Block{}, fmt.Errorf("%w: service %d has block %d with state root %s, want %d and %s; install it with the output of -genesis",
			ErrOtherRollup, r.id, last.Number, last.PostRoot, r.Origin.Number, r.Origin.PostRoot)
	}
	return r.Network.Root(ctx)
}

// Follow implements builder.Network.
func (r *Remote) Follow(ctx context.Context, found submit.Recovery, to submit.ChainSink) error {
	return r.Network.Follow(ctx, found, &reader{to, r})
}

// reader reads the blocks that the service has applied whenever finality moves.
type reader struct {
	submit.ChainSink
	remote *Remote
}

// Finalize implements submit.ChainSink. Blocks that cannot be read now are read the next
// time.
func (s *reader) Finalize(ctx context.Context, hash jamq.HeaderHash) error {
	if err := s.remote.readService(ctx, hash); err != nil && ctx.Err() == nil {
		s.remote.log.Warn("the service could not be read", "err", err)
	}
	return s.ChainSink.Finalize(ctx, hash)
}

func (r *Remote) readService(ctx context.Context, at jamq.HeaderHash) error {
	last, err := r.last(ctx, at)
	if err != nil {
		return err
	}
	for ; r.Read < last.Number; r.Read++ {
		entry, err := r.value(ctx, at, service.EntryKey(r.Read))
		if err != nil {
			return err
		}
		if len(entry) < common.HashLength {
			return fmt.Errorf("%w: an entry of %d bytes, want at least %d", jip2.ErrMalformed, len(entry), common.HashLength)
		}
		r.taken(entry[common.HashLength:])
	}
	return nil
}

// last returns the last block that the service has applied at a JAM block.
func (r *Remote) last(ctx context.Context, at jamq.HeaderHash) (proof.Commitment, error) {
	return lastIn(func(key []byte) ([]byte, error) { return r.value(ctx, at, key) })
}

// lastIn reads the last block of a service from its storage.
func lastIn(read func(key []byte) ([]byte, error)) (proof.Commitment, error) {
	var failed error
	last, err := service.Last(func(key string) []byte {
		value, err := read([]byte(key))
		failed = errors.Join(failed, err)
		return value
	})
	if failed != nil {
		return proof.Commitment{}, failed
	}
	return last, err
}

// errJIP2 is returned for a remote chain, because JIP-2 does not return the validators'
// keys.
var errJIP2 = fmt.Errorf("%w: refnode makes none on a chain behind JIP-2; package canonical/proof/jip2proof makes them from the answers of a JAM node that has JIP-2's BEEFY methods", ErrNoProofs)

// Prove implements Network.
func (r *Remote) Prove(context.Context, uint64) (*proof.Document, *proof.Trust, error) {
	return nil, nil, errJIP2
}

// Trust implements Network.
func (r *Remote) Trust(context.Context) (*proof.Trust, error) { return nil, errJIP2 }

// Handoff implements Network.
func (r *Remote) Handoff(context.Context, uint64) (*proof.Handoff, error) { return nil, errJIP2 }
