package service

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"
	"pgregory.net/rapid"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/service/internal/asm"
	"github.com/jamq/jamq/submit/codec"
)

// foreignChain is a chain of others with the service in its genesis, and its blocks.
type foreignChain struct {
	Genesis map[string]hexutil.Bytes `json:"genesis"`
	Blocks  []foreignBlock           `json:"blocks"`
}

// foreignBlock has packages by their cores.
type foreignBlock struct {
	Slot     uint32          `json:"slot"`
	Packages []hexutil.Bytes `json:"packages"`
	operands []Operand
}

// foreignOutcome is the result of a block. Keys have no prefix 0x.
type foreignOutcome struct {
	Yields  []string                 `json:"yields"`
	Entries map[string]hexutil.Bytes `json:"entries"`
}

// chainMaker draws chains with one service, whose account also provides an authorizer that lets all
// packages pass.
type chainMaker struct {
	t          testing.TB
	codec      *codec.Codec
	genesis    Genesis
	entries    map[statetrie.Key][]byte
	code       common.Hash // of the service
	authorizer common.Hash
}

const foreignService = 0x0a0b0c0d

func newChainMaker(t testing.TB) *chainMaker {
	t.Helper()
	c, err := codec.New(codec.V072, jamq.Tiny())
	require.NoError(t, err)
	program, err := asm.Assemble(nil, asm.Source{Name: "authorizer", Text: ".code\nload_imm r8, 0\nreturn r0"})
	require.NoError(t, err)
	code := append([]byte{0}, program...) // no metadata
	m := &chainMaker{t: t, codec: c, authorizer: blake2b.Sum256(code)}
	m.genesis = Genesis{Service: foreignService, Authorizer: m.authorizerHash("owner"), Block: block(0), Preimages: [][]byte{code}}
	m.entries, err = m.genesis.Entries()
	require.NoError(t, err)
	m.code = common.Hash(m.entries[statetrie.ServiceKey(foreignService)][1:33])
	return m
}

// authorizerHash returns the hash of the authorizer with a configuration.
func (m *chainMaker) authorizerHash(config string) common.Hash {
	return blake2b.Sum256(append(m.authorizer[:], config...))
}

// begin returns a chain without blocks.
func (m *chainMaker) begin() foreignChain {
	chain := foreignChain{Genesis: map[string]hexutil.Bytes{}, Blocks: []foreignBlock{}}
	for key, value := range m.entries {
		chain.Genesis[hexutil.Encode(key[:])] = value
	}
	return chain
}

// draw returns a chain whose packages have the rollup's blocks in almost the right order, and some
// that are wrong.
func (m *chainMaker) draw(t *rapid.T) foreignChain {
	chain, storage, slot := m.begin(), m.genesis.Storage(), uint32(0)
	for range rapid.IntRange(1, 6).Draw(t, "blocks") {
		b := foreignBlock{Packages: []hexutil.Bytes{}}
		next := uint64(1)
		if count := storage[string(CountKey())]; count != nil {
			next += binary.LittleEndian.Uint64(count)
		}
		for range rapid.IntRange(0, 2).Draw(t, "packages") {
			config, payloads := m.drawPackage(t, &next)
			m.addPackage(&b, slot, config, payloads...)
		}
		slot += rapid.Uint32Range(1, 3).Draw(t, "slots")
		b.Slot = slot
		chain.Blocks = append(chain.Blocks, b)
		changes, _, err := Accumulate(storage.Get, jamq.Slot(slot), b.operands)
		require.NoError(t, err)
		storage.Write(changes)
	}
	return chain
}

// drawPackage returns the configuration of the authorizer and the payloads of a package. The blocks
// in it begin with the next one.
func (m *chainMaker) drawPackage(t *rapid.T, next *uint64) (config string, payloads [][]byte) {
	config = rapid.SampledFrom([]string{"owner", "owner", "owner", "stranger"}).Draw(t, "config")
	for range rapid.IntRange(1, 3).Draw(t, "items") {
		c := block(*next + rapid.SampledFrom([]uint64{0, 0, 0, 0, 1, 2, 70}).Draw(t, "ahead"))
		if rapid.IntRange(0, 9).Draw(t, "fork") == 0 {
			c.PreRoot = label("wrong", 0)
		}
		payload := append(EncodeHeader(c), rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "block")...)
		if rapid.IntRange(0, 9).Draw(t, "short") == 0 {
			payload = payload[:rapid.IntRange(0, HeaderSize-1).Draw(t, "length")]
		}
		payloads = append(payloads, payload)
		*next++
	}
	return config, payloads
}

// addPackage adds a package to a block that follows the given slot.
func (m *chainMaker) addPackage(b *foreignBlock, slot uint32, config string, payloads ...[]byte) {
	pkg := m.unsigned(slot, payloads...)
	pkg.AuthCodeHash, pkg.AuthorizerConfig = m.authorizer, []byte(config)
	m.add(b, pkg, true)
}

// unsigned returns a package after the given slot.
func (m *chainMaker) unsigned(slot uint32, payloads ...[]byte) *codec.WorkPackage {
	pkg := &codec.WorkPackage{AuthCodeHost: foreignService}
	pkg.Context.LookupAnchorSlot = jamq.Slot(slot)
	for _, payload := range payloads {
		pkg.Items = append(pkg.Items, codec.WorkItem{Service: foreignService, CodeHash: m.code,
			Payload: payload, RefineGas: 1_000_000, AccumulateGas: 100_000})
	}
	return pkg
}

// add adds a package to a block. The service gets its results if the authorizer lets it pass.
func (m *chainMaker) add(b *foreignBlock, pkg *codec.WorkPackage, passes bool) {
	encoded, hash, err := m.codec.EncodePackage(pkg)
	require.NoError(m.t, err)
	b.Packages = append(b.Packages, encoded)
	if !passes {
		return
	}
	for i := range pkg.Items {
		output, err := Refine(pkg.Items[i].Payload, hash)
		if err != nil {
			output = nil
		}
		b.operands = append(b.operands, Operand{Package: hash, Authorizer: pkg.Authorizer(), Output: output})
	}
}

// check compares the outcomes of a chain with the model: yields, storage, and the account with its
// deposit.
func (m *chainMaker) check(t *testing.T, chain foreignChain, outcomes []foreignOutcome) {
	storage := m.genesis.Storage()
	account := m.entries[statetrie.ServiceKey(foreignService)]
	require.Len(t, outcomes, len(chain.Blocks))
	for i, b := range chain.Blocks {
		changes, yield, err := Accumulate(storage.Get, jamq.Slot(b.Slot), b.operands)
		require.NoError(t, err)
		yields := []string{}
		if yield != nil {
			yields = append(yields, yield.Hex())
		}
		require.Equal(t, yields, outcomes[i].Yields)
		storage.Write(changes)
		account = m.account(account, storage, b)
		require.Equal(t, m.want(storage, account), own(t, outcomes[i].Entries), "block %d", i)
	}
}

// account returns the encoded account after a block.
func (m *chainMaker) account(before []byte, storage Storage, b foreignBlock) []byte {
	after := append([]byte{}, before...)
	items, octets := len(storage)-len(m.genesis.Storage()), depositOf(storage)-depositOf(m.genesis.Storage())
	genesis := m.entries[statetrie.ServiceKey(foreignService)]
	binary.LittleEndian.PutUint64(after[57:], binary.LittleEndian.Uint64(genesis[57:])+octets-uint64(10*items))
	binary.LittleEndian.PutUint32(after[73:], binary.LittleEndian.Uint32(genesis[73:])+uint32(items))
	if len(b.operands) > 0 {
		binary.LittleEndian.PutUint32(after[81:], b.Slot) // of the last accumulation
	}
	return after
}

// want returns the entries of the service in the state.
func (m *chainMaker) want(storage Storage, account []byte) map[statetrie.Key]string {
	out := map[statetrie.Key]string{}
	for key, value := range m.entries {
		out[key] = hexutil.Encode(value)
	}
	for key := range m.genesis.Storage() {
		delete(out, statetrie.StorageKey(foreignService, []byte(key)))
	}
	for key, value := range storage {
		out[statetrie.StorageKey(foreignService, []byte(key))] = hexutil.Encode(value)
	}
	out[statetrie.ServiceKey(foreignService)] = hexutil.Encode(account)
	return out
}

// own returns those entries of a state that belong to the service.
func own(t *testing.T, entries map[string]hexutil.Bytes) map[statetrie.Key]string {
	t.Helper()
	out := map[statetrie.Key]string{}
	for text, value := range entries {
		raw, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
		require.NoError(t, err)
		key := statetrie.Key(raw)
		if key == statetrie.ServiceKey(foreignService) || key[0] == 0x0d && key[2] == 0x0c && key[4] == 0x0b && key[6] == 0x0a {
			out[key] = value.String()
		}
	}
	return out
}

// TestForeignChain sends whole packages to typeberry's refine and accumulation, with the service in
// the genesis. State and yields are those of the model.
func TestForeignChain(t *testing.T) {
	if *pvms == 0 {
		t.Skip("-pvms is 0: the chain of others belongs to the deep stage")
	}
	m := newChainMaker(t)
	chains := rapid.Custom(m.draw)
	var made []foreignChain
	first := firstSeed(t)
	for seed := first; seed < first+max(1, *pvms/20); seed++ {
		made = append(made, chains.Example(seed))
	}
	applied := 0
	for i, outcomes := range runForeign[foreignChain, []foreignOutcome](t, made, "node", "chain.js") {
		m.check(t, made[i], outcomes)
		for _, o := range outcomes {
			applied += len(o.Yields)
		}
	}
	t.Logf("%d chains, %d calls applied a block", len(made), applied)
}

// Of the packages with the authorizer of this package, typeberry reports those that their builder
// has signed, and the service takes those of its builder.
func TestForeignChainSigned(t *testing.T) {
	if *pvms == 0 {
		t.Skip("-pvms is 0: the chain of others belongs to the deep stage")
	}
	m := newChainMaker(t)
	signer, err := NewSigner(codec.V072, builderKey)
	require.NoError(t, err)
	m.genesis, err = m.genesis.SignedBy(signer)
	require.NoError(t, err)
	m.entries, err = m.genesis.Entries()
	require.NoError(t, err)

	chain := m.begin()
	own, strange, forged := foreignBlock{Slot: 1}, foreignBlock{Slot: 2}, foreignBlock{Slot: 3}
	pkg := m.unsigned(0, EncodeHeader(block(1)))
	sign(t, m.codec, builderKey, pkg)
	m.add(&own, pkg, true)
	pkg = m.unsigned(1, EncodeHeader(block(2)))
	sign(t, m.codec, keyOf("stranger"), pkg)
	m.add(&strange, pkg, true)
	pkg = m.unsigned(2, EncodeHeader(block(2)))
	sign(t, m.codec, builderKey, pkg)
	pkg.Items[0].Payload = EncodeHeader(block(3))
	m.add(&forged, pkg, false)
	chain.Blocks = append(chain.Blocks, own, strange, forged)

	outcomes := runForeign[foreignChain, []foreignOutcome](t, []foreignChain{chain}, "node", "chain.js")[0]
	m.check(t, chain, outcomes)
	require.Len(t, outcomes[0].Yields, 1)
	require.Empty(t, outcomes[1].Yields)
	require.Empty(t, outcomes[2].Yields)
}

// If the account's balance suffices for one block, the next one changes nothing. If one unit is
// missing, no block does.
func TestForeignChainBalance(t *testing.T) {
	if *pvms == 0 {
		t.Skip("-pvms is 0: the chain of others belongs to the deep stage")
	}
	m := newChainMaker(t)
	account := m.entries[statetrie.ServiceKey(foreignService)]
	used := binary.LittleEndian.Uint64(account[57:]) + depositBase + depositItem*uint64(binary.LittleEndian.Uint32(account[73:]))
	const count = depositItem + 34 + 1 + 8
	for _, c := range []struct{ balance, added int }{{blockDeposit + count, 4}, {blockDeposit + count - 1, 0}} {
		binary.LittleEndian.PutUint64(account[33:], used+uint64(c.balance))
		chain := m.begin()
		for slot := range uint32(2) {
			b := foreignBlock{Slot: slot + 1}
			next := uint64(1)
			if c.added > 0 {
				next += uint64(slot)
			}
			m.addPackage(&b, slot, "owner", EncodeHeader(block(next)))
			chain.Blocks = append(chain.Blocks, b)
		}
		outcomes := runForeign[foreignChain, []foreignOutcome](t, []foreignChain{chain}, "node", "chain.js")[0]
		first, second := own(t, outcomes[0].Entries), own(t, outcomes[1].Entries)
		require.Len(t, first, len(m.entries)+c.added)
		delete(first, statetrie.ServiceKey(foreignService))
		delete(second, statetrie.ServiceKey(foreignService))
		require.Equal(t, first, second)
		require.Empty(t, outcomes[1].Yields)
	}
}
