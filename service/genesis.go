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

// Genesis describes the account of the service in the genesis state of a chain.
type Genesis struct {
	// Service is the number of the account.
	Service jamq.ServiceID
	// Version is the version of the Gray Paper for which the account gets code; see [Blob].
	Version codec.Version
	// Authorizer is the authorizer whose packages the service accepts, as the hash
	// of its code hash and its configuration. See [Signer.Authorizer].
	Authorizer common.Hash
	// Block is the block after which the rollup begins, usually its block 0. Only its number,
	// hash and post-root matter.
	Block proof.Commitment
	// Balance is the balance of the account. 0 means the highest deposit that the storage can
	// ever need; see docs/service.md.
	Balance uint64
	// MinItemGas is the least gas for accumulate that a work item must grant. 0 means 100,000.
	MinItemGas uint64
	// Preimages are data that nodes can look up by hash in the account of the
	// service, for example the code of an authorizer. The program of the service
	// is always among them and need not be listed.
	Preimages [][]byte
}

// JAM demands a deposit for the storage of an account, which grows with the number and the
// size of the entries (GP 9.8). mostDeposit is enough for the most that the service ever
// stores: the blocks that it remembers, the updates that wait for earlier blocks, and the
// number of the last block.
const (
	depositBase = 100
	depositItem = 10
	// blockDeposit is the deposit for the three storage entries of one block, each for its key
	// and its value: the commitment by number (18 + 168 bytes), the mark of the package (32 +
	// 4), and the package hash with the header by number (9 + 168).
	blockDeposit = 3*(depositItem+34) + (18 + 168) + (32 + 4) + (9 + 168)
	// waitDeposit is the deposit for all updates that wait for one number.
	waitDeposit = depositItem + 34 + 9 + Rivals*updateSize
	mostDeposit = History*blockDeposit + (Ahead-1)*waitDeposit + (depositItem + 34 + 1 + 8)
)

// State is a set of entries of a chain's genesis state. Its JSON form is the
// "genesis_state" of JIP-4, which maps hexadecimal keys to hexadecimal values,
// without 0x.
type State map[statetrie.Key][]byte

// MarshalJSON implements json.Marshaler.
func (s State) MarshalJSON() ([]byte, error) {
	texts := make(map[string]string, len(s))
	for key, value := range s {
		texts[hex.EncodeToString(key[:])] = hex.EncodeToString(value)
	}
	return json.Marshal(texts)
}

// UnmarshalJSON implements json.Unmarshaler. It also accepts texts with the prefix
// 0x.
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

// SignedBy returns a genesis whose service accepts the packages of the signer. It
// sets Authorizer, and adds the code of the authorizer to the preimages.
func (g Genesis) SignedBy(s *Signer) (Genesis, error) {
	code, err := AuthorizerBlob(s.version)
	if err != nil {
		return Genesis{}, err
	}
	g.Authorizer, g.Preimages = s.Authorizer(), append(slices.Clip(g.Preimages), code)
	return g, nil
}

// Entries returns the entries that the service needs in the genesis state: its
// account, preimages and storage. The error wraps codec.ErrUnknownVersion.
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
	// The loop may run in any order, because sums do not depend on it.
	for key, value := range storage {
		out[statetrie.StorageKey(g.Service, []byte(key))] = value
		items, octets = items+1, octets+34+len(key)+len(value)
	}
	out[statetrie.ServiceKey(g.Service)] = g.account(blake2b.Sum256(code), items, octets)
	return out, nil
}

// Storage returns the storage of the service before its first block: the hash of
// the authorizer, and the commitment to the block of the genesis.
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

// account returns the encoded account (GP D.2).
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
