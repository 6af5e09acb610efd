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
	// Key is the Ed25519 key of the node. It must not be all zeros, with which
	// JAM replaces the key of a punished validator, nor another key of small
	// order: any host could prove that it holds such a key.
	Key ed25519.PublicKey
	// Addr is the endpoint of the node, host:port. It is encoded in the first
	// 18 bytes of a validator's metadata.
	Addr string
}

// Config configures a [Client]. Start from [DefaultConfig].
type Config struct {
	// Key is the builder's private key. It needs no registration on the chain.
	Key ed25519.PrivateKey
	// Genesis is the hash of the genesis header, which identifies the network.
	Genesis jamq.HeaderHash
	// Codec encodes for the chain. It must not be nil. A feed rejects blocks
	// whose slot, by the codec's slot duration, is far in the future.
	Codec *codec.Codec
	// Peers are the nodes that the client may connect to, at least one.
	Peers []Peer
	// Guarantors returns the indices in Peers of the guarantors that serve a
	// core now. If it returns none, the client tries all peers in turn. If it is
	// nil, a feed reads the assignment from the state once in each epoch, and
	// the guarantors come before the other peers.
	Guarantors func(core jamq.CoreIndex) []int
	// Listen is the local UDP address. The default is ":0", a free port.
	Listen string
	// DialTimeout bounds one attempt to connect, and RequestTimeout one request
	// including its answer. Both must be positive. The defaults are 5 s and 10
	// s.
	DialTimeout, RequestTimeout time.Duration
	// IdleTimeout is the time after which a connection without packets from the
	// peer is closed. It must be positive; the default is 30 s. The client
	// sends keep-alives.
	IdleTimeout time.Duration
	// RetryAfter is the time after a failed attempt to connect during which
	// further attempts fail at once. It must be positive; the default is 2 s.
	RetryAfter time.Duration
	// MaxBlocks and MaxState bound the answers to requests for blocks and for
	// state, in bytes. Both must be positive. The defaults are 18 MiB, enough
	// for a block with a report of the greatest size on each core of the full
	// chain, and 4 MiB. An answer needs at most about three times its bound
	// of memory while it is decoded, and 8 MiB: 62 MiB for the blocks that a feed
	// requests.
	MaxBlocks, MaxState uint32
	// Logger receives the end of announcements, at most one message per minute and
	// peer, and failures to follow the chain. Nil discards them.
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
