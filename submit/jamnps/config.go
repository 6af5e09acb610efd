package jamnps

import (
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/fields"
	"github.com/jamq/jamq/internal/smallorder"
	"github.com/jamq/jamq/submit/codec"
)

// Peer is a node of the network, usually a validator.
type Peer struct {
	// Key is the Ed25519 key of the node. When the client connects, the node must prove
	// that it holds the key. A key of small order is not allowed, because any host could
	// give such a proof for it. This excludes the key of zeros, with which JAM replaces the
	// key of a punished validator.
	Key ed25519.PublicKey
	// Addr is the address of the node, as host:port. Validators publish their address in
	// the first 18 bytes of their metadata on the chain.
	Addr string
}

// Config configures a [Client]. Start from [DefaultConfig].
type Config struct {
	// Key is the builder's private key, which need not be registered on the
	// chain.
	Key ed25519.PrivateKey
	// Genesis is the hash of the genesis header, which identifies the network.
	Genesis jamq.HeaderHash
	// Codec encodes and decodes the messages of this chain. It must not be nil. A feed also
	// uses the codec's slot duration, to reject blocks whose slot is far in the future.
	Codec *codec.Codec
	// Peers are the nodes that the client may connect to, at least one.
	Peers []Peer
	// Guarantors returns the peers that currently guarantee packages of a core, as indices
	// in Peers. If it returns none, the client tries all peers in turn. If Guarantors is
	// nil, a feed reads the guarantors from the chain's state once in each epoch, and the
	// client tries them before the other peers.
	Guarantors func(core jamq.CoreIndex) []int
	// Listen is the local UDP address. The default, ":0", selects a free port.
	Listen string
	// DialTimeout is the maximum duration of an attempt to connect. RequestTimeout is the
	// maximum duration of a request, including the answer. Both must be positive. The
	// defaults are 5 s and 10 s.
	DialTimeout, RequestTimeout time.Duration
	// IdleTimeout is the time without any packet from the peer after which a connection is
	// closed. The client sends keep-alives, so this happens only to peers that no longer
	// react. It must be positive; the default is 30 s.
	IdleTimeout time.Duration
	// RetryAfter is the time after a failed attempt to connect to a peer during which
	// requests to that peer fail immediately. It must be positive; the default is 2 s.
	RetryAfter time.Duration
	// MaxBlocks and MaxState are the maximum sizes, in bytes, of the answers to requests
	// for blocks and for state. Both must be positive. The default of MaxBlocks is 18 MiB,
	// which is enough for a block with a report of the greatest size on each core of the
	// full chain. The default of MaxState is 4 MiB.
	//
	// While the client decodes an answer, it needs up to about three times the limit plus 8
	// MiB of memory. For the blocks that a feed requests, this is 62 MiB.
	MaxBlocks, MaxState uint32
	// Logger receives a message when a peer's announcements end, at most one per minute and
	// peer, and when a feed cannot follow the chain. If Logger is nil, nothing is logged.
	Logger *slog.Logger
}

// DefaultConfig returns the default configuration for a builder with the given
// key on a network.
func DefaultConfig(key ed25519.PrivateKey, genesis jamq.HeaderHash, c *codec.Codec, peers []Peer) Config {
	return Config{
		Key: key, Genesis: genesis, Codec: c, Peers: peers, Listen: ":0", DialTimeout: 5 * time.Second, RequestTimeout: 10 * time.Second,
		IdleTimeout: 30 * time.Second, RetryAfter: 2 * time.Second, MaxBlocks: 18 << 20, MaxState: 4 << 20,
	}
}

// Validate returns an error that wraps [ErrInvalidConfig] and lists each field
// that is out of range, or nil.
func (c *Config) Validate() error {
	var wrong fields.Errors
	wrong.Want(len(c.Key) == ed25519.PrivateKeySize, "len(Key)", len(c.Key), fmt.Sprintf("%d bytes", ed25519.PrivateKeySize))
	wrong.Want(c.Codec != nil, "Codec", "nil", "a codec")
	wrong.Want(len(c.Peers) > 0, "Peers", c.Peers, "at least one")
	fields.Positive(&wrong, "MaxBlocks", c.MaxBlocks)
	fields.Positive(&wrong, "MaxState", c.MaxState)
	for i, p := range c.Peers {
		wrong.Add(p.validate(i))
	}
	fields.Positive(&wrong, "DialTimeout", c.DialTimeout)
	fields.Positive(&wrong, "RequestTimeout", c.RequestTimeout)
	fields.Positive(&wrong, "IdleTimeout", c.IdleTimeout)
	fields.Positive(&wrong, "RetryAfter", c.RetryAfter)
	return wrong.Wrap(ErrInvalidConfig)
}

func (p *Peer) validate(i int) error {
	if len(p.Key) != ed25519.PublicKeySize {
		return fmt.Errorf("Peers[%d].Key has %d bytes, want %d", i, len(p.Key), ed25519.PublicKeySize)
	}
	if smallorder.Has([32]byte(p.Key)) {
		return fmt.Errorf("Peers[%d].Key is %x, a point of small order; want the key of a validator that is not punished", i, p.Key)
	}
	if _, _, err := net.SplitHostPort(p.Addr); err != nil {
		return fmt.Errorf("Peers[%d].Addr: %w", i, err)
	}
	return nil
}
