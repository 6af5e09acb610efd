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
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/codec"
)

// ChainSpec is the content of a chain specification file (JIP-4). The file
// identifies a network and names the nodes to which a client connects first.
type ChainSpec struct {
	// ID is the name of the network.
	ID string
	// Bootnodes are the nodes to which a client can connect before it knows other peers.
	// The list may be empty.
	Bootnodes []Peer
	// Genesis is the hash of the genesis header.
	Genesis jamq.HeaderHash
	// Spec contains the constants of the chain. From Gray Paper 0.8.0 on, the number of
	// validators can change and is no longer a constant. Spec.Validators is then the number
	// with which the chain begins. It is the first of these numbers that the file contains:
	//
	//   - the number of active validators in the genesis state
	//   - the number in the epoch mark of the genesis header, which announces the next ones
	//   - the greatest possible number, which is three for each core
	Spec jamq.ChainSpec

	since codec.Version // the oldest version whose parameters have the form of those in the file
}

// OpenChain opens a client, with default settings, for the network that a chain
// specification file describes. The client's peers are the bootnodes in the file. key
// is the builder's private key. version is the network's Gray Paper version, which the
// file does not contain. Errors are those of ParseChainSpec, ChainSpec.Config and Open.
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

// Config returns the default configuration of a client for this network, with the
// bootnodes as its peers. The error wraps ErrInvalidConfig if version is older than the
// format of the file's protocol parameters; other errors are those of codec.New.
func (s *ChainSpec) Config(key ed25519.PrivateKey, version codec.Version) (Config, error) {
	if version < s.since {
		return Config{}, fmt.Errorf("%w: version is %v, want at least %v, from which on protocol parameters are like those of %q", ErrInvalidConfig, version, s.since, s.ID)
	}
	c, err := codec.New(version, s.Spec)
	if err != nil {
		return Config{}, err
	}
	return DefaultConfig(key, s.Genesis, c, s.Bootnodes), nil
}

// ParseChainSpec reads a chain specification file. It ignores unknown fields. Of the
// genesis state, it uses only the number of validators. The error wraps ErrMalformed,
// or jamq.ErrInvalidSpec if the constants contradict each other.
func ParseChainSpec(file []byte) (*ChainSpec, error) {
	var fields struct {
		ID         string          `json:"id"`
		Bootnodes  []string        `json:"bootnodes"`
		Genesis    string          `json:"genesis_header"`
		Parameters string          `json:"protocol_parameters"`
		State      json.RawMessage `json:"genesis_state"`
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
	validators := func(spec jamq.ChainSpec) int {
		s.since = codec.V080
		return genesisValidators(spec, header, fields.State)
	}
	if s.Spec, err = decodeParameters(fields.ID, parameters, validators); err != nil {
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

// genesisValidators returns the number of active validators with which a chain begins.
func genesisValidators(s jamq.ChainSpec, header []byte, state json.RawMessage) int {
	// The genesis state is an object of hexadecimal keys and values.
	var values map[string]json.RawMessage
	var active string
	key := statetrie.ChapterKey(statetrie.ChapterValidators)
	if json.Unmarshal(state, &values) == nil && json.Unmarshal(values[hex.EncodeToString(key[:])], &active) == nil {
		raw, err := hex.DecodeString(active)
		if n := len(raw) / codec.ValidatorSize; err == nil && n > 0 {
			return n
		}
	}
	s.Validators = jamq.ValidatorsOf(s.Cores)
	// The state has no validators, so take the number in the epoch mark of the genesis
	// header.
	if c, err := codec.New(codec.V080, s); err == nil {
		if genesis, err := codec.Decode[codec.Header](c, header); err == nil && genesis.Epoch != nil {
			return len(genesis.Epoch.Validators)
		}
	}
	return s.Validators
}

// ParsePeer reads a bootnode in a chain specification file, which has the form
// name@ip:port. ParsePeer computes the node's key from the name, which is also the name
// in the node's certificate. An IPv6 address may be in brackets. The error wraps
// ErrMalformed.
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
