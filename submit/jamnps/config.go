package jamnps

import (
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/submit/codec"
)

// Peer is a node of the network, usually a validator.
type Peer struct {
	// Key is the Ed25519 key by which it is known. It must not be the zeros
	// by which JAM replaces the key of a punished validator, nor another key of
	// small order: any host could prove that it holds such a key.
	Key ed25519.PublicKey
	// Addr is its endpoint, host:port: the first 18 bytes of a validator's metadata.
	Addr string
}

// Config says who the builder is and whom it talks to. Begin with [DefaultConfig].
type Config struct {
	// Key is the builder's own key. It need not be known to anybody.
	Key ed25519.PrivateKey
	// Genesis is the hash of the genesis header, which tells networks apart.
	Genesis jamq.HeaderHash
	// Codec is the chain's, with its slot duration: a feed takes no blocks from far in the future.
	Codec *codec.Codec
	// Peers are the nodes that may be connected to, at least one.
	Peers []Peer
	// Guarantors, if not nil, returns which of Peers serve a core now, by index. Otherwise all are tried in turn.
	Guarantors func(core jamq.CoreIndex) []int
	// Listen is the local UDP address; ":0" by default.
	Listen string
	// DialTimeout bounds one attempt to connect, RequestTimeout one request with its answer; 5 s and 10 s, positive.
	DialTimeout, RequestTimeout time.Duration
	// IdleTimeout is after how long a silent connection is given up, positive; 30 s. It is kept alive meanwhile.
	IdleTimeout time.Duration
	// RetryAfter is how long a peer that could not be reached is left alone, positive; 2 s.
	RetryAfter time.Duration
	// MaxBlocks bounds the answer to a request for blocks, in bytes, positive; 64 MiB. MaxState that for state; 16 MiB.
	MaxBlocks, MaxState uint32
	// Logger gets what an operator should know. Nil is silent.
	Logger *slog.Logger
}

// DefaultConfig returns the defaults for a builder with a key on a network.
func DefaultConfig(key ed25519.PrivateKey, genesis jamq.HeaderHash, c *codec.Codec, peers []Peer) Config {
	return Config{
		Key: key, Genesis: genesis, Codec: c, Peers: peers, Listen: ":0", DialTimeout: 5 * time.Second, RequestTimeout: 10 * time.Second,
		IdleTimeout: 30 * time.Second, RetryAfter: 2 * time.Second, MaxBlocks: 64 << 20, MaxState: 16 << 20,
	}
}

// Validate names the first field that is out of range. The error wraps [ErrInvalidConfig].
func (c *Config) Validate() error {
	switch {
	case len(c.Key) != ed25519.PrivateKeySize:
		return fmt.Errorf("%w: Key has %d bytes, want %d", ErrInvalidConfig, len(c.Key), ed25519.PrivateKeySize)
	case c.Codec == nil:
		return fmt.Errorf("%w: Codec must be given", ErrInvalidConfig)
	case len(c.Peers) == 0:
		return fmt.Errorf("%w: Peers is empty, want at least one", ErrInvalidConfig)
	case c.MaxBlocks == 0 || c.MaxState == 0:
		return fmt.Errorf("%w: MaxBlocks is %d and MaxState %d, want positive", ErrInvalidConfig, c.MaxBlocks, c.MaxState)
	}
	for i, p := range c.Peers {
		if len(p.Key) != ed25519.PublicKeySize {
			return fmt.Errorf("%w: Peers[%d].Key has %d bytes, want %d", ErrInvalidConfig, i, len(p.Key), ed25519.PublicKeySize)
		}
		if err := proof.ValidatorKey(p.Key).Validate(); err != nil {
			return fmt.Errorf("%w: Peers[%d].Key: %w", ErrInvalidConfig, i, err)
		}
		if _, _, err := net.SplitHostPort(p.Addr); err != nil {
			return fmt.Errorf("%w: Peers[%d].Addr: %w", ErrInvalidConfig, i, err)
		}
	}
	for _, f := range []struct {
		field string
		have  time.Duration
	}{
		{"DialTimeout", c.DialTimeout}, {"RequestTimeout", c.RequestTimeout}, {"IdleTimeout", c.IdleTimeout}, {"RetryAfter", c.RetryAfter},
	} {
		if f.have <= 0 {
			return fmt.Errorf("%w: %s is %v, want positive", ErrInvalidConfig, f.field, f.have)
		}
	}
	return nil
}
