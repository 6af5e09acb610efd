package proof

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
)

// world is a small JAM chain as far as proofs go: validators who sign, a service that commits, one
// rollup block.
type world struct {
	keys    []ed25519.PrivateKey
	secrets []BLSSecret
	trust   *Trust

	txs        types.Transactions
	receipts   types.Receipts
	header     *types.Header
	commitment Commitment
	others     []Output // other outputs of the block
	state      *statetrie.Trie
	leaves     []common.Hash
	log        Log
	target     Target
}

const (
	worldValidators = 6
	worldService    = jamq.ServiceID(4359)
)

func newWorld(t testing.TB) *world { return newWorldOf(t, worldValidators) }

// newWorldOf returns a world with a validator set of the given size.
func newWorldOf(t testing.TB, validators int) *world {
	w := &world{trust: &Trust{Set: 3, Service: worldService, KeyPrefix: []byte("block")}}
	for i := range validators {
		seed := make([]byte, 32)
		binary.LittleEndian.PutUint32(seed, uint32(i+1))
		key := ed25519.NewKeyFromSeed(seed)
		secret, err := NewBLSSecret(seed)
		require.NoError(t, err)
		w.keys, w.secrets = append(w.keys, key), append(w.secrets, secret)
		w.trust.Validators = append(w.trust.Validators, ValidatorKey(key.Public().(ed25519.PublicKey)))
		w.trust.BLS = append(w.trust.BLS, secret.Public())
	}
	txs, root := block(20)
	w.txs = txs
	w.receipts = outcomes(20)
	w.header = &types.Header{
		Number: big.NewInt(9), Difficulty: new(big.Int), Root: common.Hash{2}, TxHash: root, UncleHash: types.EmptyUncleHash,
		ReceiptHash: types.DeriveSha(w.receipts, trie.NewStackTrie(nil)),
	}
	w.commitment = Commitment{
		Number: 9, Hash: w.header.Hash(), PreRoot: common.Hash{1}, PostRoot: common.Hash{2}, TransactionsRoot: root, Package: jamq.PackageHash{3},
	}
	w.others = []Output{{Service: 1, Yield: common.Hash{1}}, {Service: worldService + 1, Yield: w.commitment.Yield()}}
	outputs := []Output{w.others[0], {Service: worldService, Yield: w.commitment.Yield()}, w.others[1]}

	w.state = someState().Set(statetrie.ChapterKey(statetrie.ChapterOutputs), EncodeOutputs(outputs))
	for _, n := range []uint64{8, 9, 10} {
		c := w.commitment
		c.Number = n
		w.state = w.state.Set(statetrie.StorageKey(worldService, CommitmentKey(w.trust.KeyPrefix, n)), c.Encode())
	}
	for i := range 11 {
		w.leaves = append(w.leaves, common.Hash{byte(i)})
	}
	w.leaves[6] = OutputRoot(outputs)
	for _, leaf := range w.leaves {
		w.log.Append(leaf)
	}
	w.target = Target{Header: jamq.HeaderHash{7}, Slot: 77, StateRoot: w.state.Root()}
	return w
}

// someState returns a state with entries of a service.
func someState() (t *statetrie.Trie) {
	for i := range byte(20) {
		t = t.Set(statetrie.StorageKey(worldService+2, []byte{i}), bytes.Repeat([]byte{i}, 3*int(i)))
	}
	return t
}

// punish replaces the keys of validators by zeros, as JAM does.
func (w *world) punish(validators ...int) {
	for _, v := range validators {
		w.trust.Validators[v], w.trust.BLS[v] = ValidatorKey{}, BLSKey{}
	}
}

// vote returns the signatures of some validators over a precommit.
func (w *world) vote(p Precommit, validators ...int) *Finality {
	f := &Finality{Format: Draft{}.Name(), Precommit: p}
	for _, v := range validators {
		f.Signatures = append(f.Signatures, p.Sign(Draft{}, uint16(v), w.keys[v]))
	}
	return f
}

func (w *world) beefy(t testing.TB, validators ...int) *Beefy {
	b := &Beefy{Peak: w.log.SuperPeak()}
	for _, v := range validators {
		s, err := w.secrets[v].SignPeak(b.Peak, uint16(v))
		require.NoError(t, err)
		b.Signatures = append(b.Signatures, s)
	}
	return b
}

// blockBase returns the commitment of a document with its claim.
func (w *world) blockBase() *Document {
	return &Document{
		Version:    Version,
		Claim:      Claim{Number: 9, Block: w.commitment.Hash, Package: w.commitment.Package},
		Commitment: w.commitment.Encode(),
	}
}

// base returns the ends of a document, for transaction 5, without the links between.
func (w *world) base(t testing.TB) *Document {
	d := w.blockBase()
	require.NoError(t, d.AddTransaction(w.txs, 5))
	require.ErrorIs(t, d.AddTransaction(w.txs, 20), ErrTransaction)
	return d
}

func (w *world) storageDocument(t testing.TB) *Document {
	d := w.base(t)
	d.Finality = w.vote(Precommit{Target: w.target, Round: 12, Set: 3}, 0, 1, 2, 4, 5)
	d.Storage = &StorageProof{Nodes: w.state.Prove(statetrie.StorageKey(worldService, CommitmentKey(w.trust.KeyPrefix, 9)))}
	return d
}

// receiptDocument is a document by the storage with the receipt, as that of a
// transaction that failed.
func (w *world) receiptDocument(t testing.TB) *Document {
	d := w.storageDocument(t)
	require.NoError(t, d.AddReceipt(w.header, w.receipts))
	return d
}

// blockDocument is a document by the storage about the block only.
func (w *world) blockDocument(t testing.TB) *Document {
	d, block := w.storageDocument(t), w.blockBase()
	block.Finality, block.Storage = d.Finality, d.Storage
	return block
}

func (w *world) outputsDocument(t testing.TB) *Document {
	d := w.base(t)
	d.Finality = w.vote(Precommit{Target: w.target, Round: 12, Set: 3}, 0, 1, 2, 3, 4, 5)
	value, ok := w.state.Get(statetrie.ChapterKey(statetrie.ChapterOutputs))
	require.True(t, ok)
	d.Outputs = &ChapterProof{Value: value, Nodes: w.state.Prove(statetrie.ChapterKey(statetrie.ChapterOutputs))}
	return d
}

func (w *world) logDocument(t testing.TB) *Document {
	d := w.base(t)
	d.Beefy = w.beefy(t, 0, 1, 2, 3, 5)
	output, err := ProveOutput([]Output{w.others[0], {Service: worldService, Yield: w.commitment.Yield()}, w.others[1]}, 1)
	require.NoError(t, err)
	log, err := ProveLog(w.leaves, 6)
	require.NoError(t, err)
	d.Log = &YieldProof{Output: output, Log: log}
	return d
}
