package jam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/jip2net"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jip2"
)

// ErrServiceInUse is returned if the rollup's service on the JAM chain already has
// blocks that this node does not know. ErrOtherRollup is returned if the service was
// installed for a different rollup. ErrOtherBuilder is returned if the service accepts
// only packages that a different key has signed.
var (
	ErrServiceInUse = errors.New("jam: the service is in use")
	ErrOtherRollup  = errors.New("jam: the service is of another rollup")
	ErrOtherBuilder = errors.New("jam: the service is of another builder")
)

// Remote is a JAM chain that the node reaches through the RPC of a JAM node. The
// genesis state of that chain must contain the rollup's service.
type Remote struct {
	*jip2net.Network
	// Origin is the block after which the rollup begins: block 0, or the last imported
	// block. When a node starts for the first time, the service must not have applied any
	// later block.
	Origin proof.Commitment
	// Read is the number of the last block that the node has found in the service's
	// storage, which has an entry for each applied block. After a restart, the node sets
	// Read to the number of its last final block.
	Read uint64

	id     jamq.ServiceID
	signer *service.Signer
	taken  func(header []byte)
	// value reads a key in the service's storage in the state after a JAM block.
	value func(ctx context.Context, at jamq.HeaderHash, key []byte) ([]byte, error)
	log   *slog.Logger
}

// Genesis returns the rollup's service for the genesis state of a JAM chain. The
// service continues after the given block, and accepts only packages that the signer
// has signed.
func Genesis(id jamq.ServiceID, version codec.Version, signer *service.Signer, block proof.Commitment) (service.Genesis, error) {
	return service.Genesis{Service: id, Version: version, Block: block}.SignedBy(signer)
}

// packages returns the function that makes a work package from a payload. The work
// package still lacks the refine context and the signature.
func packages(id jamq.ServiceID, version codec.Version) (func(payload []byte) codec.WorkPackage, error) {
	const refineGas = 1_000_000_000
	code, err := service.Blob(version)
	return codec.OneItem(id, blake2b.Sum256(code), common.Hash{}, refineGas, service.AccumulateGas), err
}

// Connect connects to the JAM node at a URL. version is the Gray Paper version of the
// chain, and signer signs the packages. Connect calls taken with the header of each
// block that the service has applied on the final chain, after the block number
// Remote.Read.
func Connect(ctx context.Context, url string, version codec.Version, id jamq.ServiceID, signer *service.Signer, log *slog.Logger, taken func(header []byte)) (*Remote, error) {
	client := jip2.DefaultConfig(url)
	client.Logger = log
	pack, err := packages(id, version)
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
		Accepted: acceptedIn,
		Package:  pack,
		Sign:     signer.Sign,
	})
	if err != nil {
		return nil, fmt.Errorf("jam: node at %s: %w", url, err)
	}
	value := func(ctx context.Context, at jamq.HeaderHash, key []byte) ([]byte, error) {
		return inner.Client().ServiceValue(ctx, at, id, key)
	}
	return &Remote{Network: inner, id: id, signer: signer, taken: taken, value: value, log: log}, nil
}

// Run implements Network.
func (r *Remote) Run(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Root implements builder.Network. The builder calls it when a node starts for the
// first time. Root returns an error if the service was already used by another node,
// was installed for a different rollup, or accepts the packages of a different builder.
func (r *Remote) Root(ctx context.Context) (jamq.Block, error) {
	best, err := r.Client().BestBlock(ctx)
	if err != nil {
		return jamq.Block{}, err
	}
	at := jamq.HeaderHash(best.HeaderHash)
	last, err := r.last(ctx, at)
	var authorizer []byte
	if err == nil {
		authorizer, err = r.value(ctx, at, service.AuthorizerKey())
	}
	switch {
	case err != nil:
		return jamq.Block{}, err
	case common.BytesToHash(authorizer) != r.signer.Authorizer():
		return jamq.Block{}, fmt.Errorf("%w: service %d accepts packages of the authorizer %x, want %s; use its builder's key, or install it with the output of -genesis",
			ErrOtherBuilder, r.id, authorizer, r.signer.Authorizer())
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

// reader passes the updates of the JAM chain to the builder. Whenever the finalized
// block moves, reader also finds in the service's storage which blocks the service has
// applied since.
type reader struct {
	submit.ChainSink
	remote *Remote
}

// Finalize implements submit.ChainSink. If it cannot read the service's blocks now, it
// tries again when the next block becomes final.
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

// last returns the last block that the service had applied at a JAM block.
func (r *Remote) last(ctx context.Context, at jamq.HeaderHash) (proof.Commitment, error) {
	return lastIn(func(key []byte) ([]byte, error) { return r.value(ctx, at, key) })
}

// lastIn reads from the storage of a service which block it has applied last.
func lastIn(read func(key []byte) ([]byte, error)) (last proof.Commitment, err error) {
	err = withStorage(read, func(get func(key string) []byte) (err error) { last, err = service.Last(get); return err })
	return last, err
}

// acceptedIn tells a builder that has lost records whether the service has applied a
// rollup block. payload is that of the block, and the result is the package that contained
// it. It is used as a builder.Explainer.
func acceptedIn(read func(key []byte) ([]byte, error), payload []byte) (pkg jamq.PackageHash, err error) {
	err = withStorage(read, func(get func(key string) []byte) (err error) { pkg, err = service.Accepted(get, payload); return err })
	if errors.Is(err, service.ErrOtherBlock) {
		err = fmt.Errorf("%w: %w", builder.ErrServiceInUse, err)
	}
	return pkg, err
}

// withStorage calls f with a function that reads the service's storage.
func withStorage(read func(key []byte) ([]byte, error), f func(get func(key string) []byte) error) error {
	var failed error
	err := f(func(key string) []byte {
		value, err := read([]byte(key))
		// get cannot return an error, so withStorage does.
		failed = errors.Join(failed, err)
		return value
	})
	return cmp.Or(failed, err)
}

// errJIP2 is returned for the chain of a JAM node, because JIP-2 does not provide the
// keys of the validators, which a proof needs.
var errJIP2 = fmt.Errorf("%w: refnode makes none on a chain behind JIP-2; package canonical/proof/jip2proof makes them from the answers of a JAM node that has JIP-2's BEEFY methods", ErrNoProofs)

// Prove implements Network.
func (r *Remote) Prove(context.Context, uint64) (*proof.Document, *proof.Trust, error) {
	return nil, nil, errJIP2
}

// Trust implements Network.
func (r *Remote) Trust(context.Context) (*proof.Trust, error) { return nil, errJIP2 }

// Handoff implements Network.
func (r *Remote) Handoff(context.Context, uint64) (*proof.Handoff, error) { return nil, errJIP2 }
