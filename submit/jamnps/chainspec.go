package jamnps

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
)

// ChainSpec is the content of a chain specification file (JIP-4). The file identifies a network and
// names the nodes to which a client connects first.
type ChainSpec struct {
	// ID is the name of the network.
	ID string
	// Bootnodes are the nodes that a client without any other peers can connect to. There may be
	// none.
	Bootnodes []Peer
	// Genesis is the hash of the genesis header.
	Genesis jamq.HeaderHash
	// Spec has the constants of the chain.
	Spec jamq.ChainSpec
}

// OpenChain opens a client for the network of a chain specification file, with default settings.
// The peers of the client are the bootnodes in the file. key is the builder's private key. version
// is the version of the Gray Paper that the network follows, which the file does not contain.
// Errors are those of ParseChainSpec, codec.New and Open.
func OpenChain(file []byte, key ed25519.PrivateKey, version codec.Version) (*Client, error) {
	spec, err := ParseChainSpec(file)
	if err != nil {
		return nil, err
	}
	cfg, err := spec.Config(key, version)
	if err != nil {
		return nil, err
	}
	return Open(cfg)
}

// Config returns the default configuration of a client for this network: its peers are the
// bootnodes. Errors are those of codec.New.
func (s *ChainSpec) Config(key ed25519.PrivateKey, version codec.Version) (Config, error) {
	c, err := codec.New(version, s.Spec)
	if err != nil {
		return Config{}, err
	}
	return DefaultConfig(key, s.Genesis, c, s.Bootnodes), nil
}

// ParseChainSpec reads a chain specification file. It ignores the genesis state
// and unknown fields. The error wraps ErrMalformed, or jamq.ErrInvalidSpec if the
// constants contradict each other.
func ParseChainSpec(file []byte) (*ChainSpec, error) {
	var fields struct {
		ID         string   `json:"id"`
		Bootnodes  []string `json:"bootnodes"`
		Genesis    string   `json:"genesis_header"`
		Parameters string   `json:"protocol_parameters"`
	}
	if err := json.Unmarshal(file, &fields); err != nil {
		return nil, fmt.Errorf("%w: chain specification: %w", ErrMalformed, err)
	}
	header, err := hex.DecodeString(fields.Genesis)
	if err != nil || len(header) == 0 {
		return nil, fmt.Errorf("%w: chain specification: genesis_header of %d digits, want hexadecimal: %v", ErrMalformed, len(fields.Genesis), err)
	}
	parameters, err := hex.DecodeString(fields.Parameters)
	if err != nil {
		return nil, fmt.Errorf("%w: chain specification: protocol_parameters: %w", ErrMalformed, err)
	}
	s := &ChainSpec{ID: fields.ID, Genesis: blake2b.Sum256(header)}
	if s.Spec, err = decodeParameters(fields.ID, parameters, func(s jamq.ChainSpec) int { return genesisValidators(s, header) }); err != nil {
		return nil, err
	}
	for _, text := range fields.Bootnodes {
		p, err := ParsePeer(text)
		if err != nil {
			return nil, err
		}
		s.Bootnodes = append(s.Bootnodes, p)
	}
	return s, nil
}

// genesisValidators returns the number of validators with which a chain of Gray Paper 0.8.0 begins.
// This is the number of validators in the epoch mark of the genesis header or, if it has no epoch
// mark, three for each core.
func genesisValidators(s jamq.ChainSpec, header []byte) int {
	s.Validators = jamq.ValidatorsOf(s.Cores)
	c, err := codec.New(codec.V080, s)
	if err != nil {
		return s.Validators
	}
	genesis, err := codec.Decode[codec.Header](c, header)
	if err != nil || genesis.Epoch == nil {
		return s.Validators
	}
	return len(genesis.Epoch.Validators)
}

// ParsePeer reads an entry of the bootnodes in a chain specification file: name@ip:port. The name
// is the one in the node's certificate, from which ParsePeer computes the node's key. An IPv6
// address may be in brackets. The error wraps ErrMalformed.
func ParsePeer(text string) (Peer, error) {
	name, endpoint, found := strings.Cut(text, "@")
	split := strings.LastIndexByte(endpoint, ':')
	if !found || split < 0 {
		return Peer{}, fmt.Errorf("%w: peer %.120q, want name@ip:port", ErrMalformed, text)
	}
	key, err := keyOfName(name)
	if err != nil {
		return Peer{}, err
	}
	ip := strings.TrimSuffix(strings.TrimPrefix(endpoint[:split], "["), "]")
	at, err := netip.ParseAddrPort(net.JoinHostPort(ip, endpoint[split+1:]))
	if err != nil {
		return Peer{}, fmt.Errorf("%w: peer %.120q: %w", ErrMalformed, text, err)
	}
	return Peer{Key: key, Addr: at.String()}, nil
}
