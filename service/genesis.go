package service

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/codec"
)

// Genesis describes an account with the service in the genesis state of a chain.
type Genesis struct {
	// Service is the number of the account.
	Service jamq.ServiceID
	// Version selects the code; see Blob.
	Version codec.Version
	// Authorizer is the hash of the only authorizer whose packages the service
	// accepts: of its code hash and its configuration.
	Authorizer common.Hash
	// Block is the rollup's block 0, or another one to begin after. Its number,
	// hash and post-root count.
	Block proof.Commitment
	// Balance is the balance of the account. 0 means the most that the storage ever
	// locks; see docs/service.md.
	Balance uint64
	// MinItemGas is the least gas that a package must grant to accumulate. 0
	// means 100,000.
	MinItemGas uint64
	// Preimages are further preimages that the account provides, for example the
	// code of an authorizer.
	Preimages [][]byte
}

// The parts of an account's deposit (GP 9.8). mostDeposit is that of all
// blocks that the service keeps, of all updates that may wait, and of the count.
const (
	depositBase = 100
	depositItem = 10
	// blockDeposit is the balance that a block locks: commitment, mark and entry.
	blockDeposit = 3*(depositItem+34) + (18 + 168) + (32 + 4) + (9 + 168)
	// waitDeposit is the balance that the updates lock which wait for a number.
	waitDeposit = depositItem + 34 + 9 + Rivals*updateSize
	mostDeposit = History*blockDeposit + (Ahead-1)*waitDeposit + (depositItem + 34 + 1 + 8)
)

// State has entries of the genesis state of a chain. As JSON it is what JIP-4 calls
// "genesis_state": hexadecimal texts by hexadecimal texts, without 0x.
type State map[statetrie.Key][]byte

// MarshalJSON implements json.Marshaler.
func (s State) MarshalJSON() ([]byte, error) {
	texts := make(map[string]string, len(s))
	for key, value := range s {
		texts[hex.EncodeToString(key[:])] = hex.EncodeToString(value)
	}
	return json.Marshal(texts)
}

// UnmarshalJSON implements json.Unmarshaler. Prefixes 0x are accepted.
func (s *State) UnmarshalJSON(raw []byte) error {
	var texts map[string]string
	if err := json.Unmarshal(raw, &texts); err != nil {
		return err
	}
	*s = make(State, len(texts))
	for key, text := range texts {
		k, err := hex.DecodeString(strings.TrimPrefix(key, "0x"))
		if err == nil && len(k) != len(statetrie.Key{}) {
			err = fmt.Errorf("%d bytes, want %d", len(k), len(statetrie.Key{}))
		}
		if err != nil {
			return fmt.Errorf("service: the key %q of a state: %w", key, err)
		}
		value, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
		if err != nil {
			return fmt.Errorf("service: the value of %s in a state: %w", key, err)
		}
		(*s)[statetrie.Key(k)] = value
	}
	return nil
}

// SignedBy returns the genesis of a service that accepts the packages of a signer: it
// sets Authorizer, and adds the code of the authorizer to the preimages.
func (g Genesis) SignedBy(s *Signer) (Genesis, error) {
	code, err := AuthorizerBlob(s.version)
	if err != nil {
		return Genesis{}, err
	}
	g.Authorizer, g.Preimages = s.Authorizer(), append(slices.Clip(g.Preimages), code)
	return g, nil
}

// Entries returns the entries of the genesis state: the account, its preimages,
// and its storage. The error wraps codec.ErrUnknownVersion.
func (g Genesis) Entries() (State, error) {
	code, err := Blob(g.Version)
	if err != nil {
		return nil, err
	}
	out := State{}
	items, octets := 0, 0
	for _, preimage := range append([][]byte{code}, g.Preimages...) {
		hash := blake2b.Sum256(preimage)
		out[statetrie.PreimageKey(g.Service, hash)] = preimage
		sinceSlot0 := []byte{1, 0, 0, 0, 0}
		out[statetrie.RequestKey(g.Service, hash, uint32(len(preimage)))] = sinceSlot0
		items, octets = items+2, octets+81+len(preimage)
	}
	storage := g.Storage()
	// Any order of the loop gives the same sums.
	for key, value := range storage {
		out[statetrie.StorageKey(g.Service, []byte(key))] = value
		items, octets = items+1, octets+34+len(key)+len(value)
	}
	out[statetrie.ServiceKey(g.Service)] = g.account(blake2b.Sum256(code), items, octets)
	return out, nil
}

// Storage returns the storage of the service before its first block: the authorizer
// and the commitment to the block of the genesis.
func (g Genesis) Storage() Storage {
	s := Storage{
		string(AuthorizerKey()):       g.Authorizer[:],
		commitmentKey(g.Block.Number): g.Block.Encode(),
	}
	if g.Block.Number > 0 {
		s[string(CountKey())] = binary.LittleEndian.AppendUint64(nil, g.Block.Number)
	}
	return s
}

// account encodes the account (GP D.2).
func (g Genesis) account(code common.Hash, items, octets int) []byte {
	balance, gas := g.Balance, g.MinItemGas
	if balance == 0 {
		balance = uint64(depositBase + depositItem*items + octets + mostDeposit)
	}
	if gas == 0 {
		gas = 100_000
	}
	out := append([]byte{0}, code[:]...)
	const transferGas, gratis = 20_000, 0 // a transfer is for the balance only
	for _, n := range []uint64{balance, gas, transferGas, uint64(octets), gratis} {
		out = binary.LittleEndian.AppendUint64(out, n)
	}
	for _, n := range []int{items, 0, 0, 0} { // items, created, last accumulation, parent
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
	}
	return out
}
