package proof

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"
)

// outcomes returns the receipts of a block, of which every fifth transaction failed.
func outcomes(n int) types.Receipts {
	receipts := make(types.Receipts, n)
	for i := range receipts {
		receipts[i] = &types.Receipt{Type: uint8(i % 3), CumulativeGasUsed: 21000 * uint64(i+1), Logs: []*types.Log{}}
		if i%5 != 0 {
			receipts[i].Status = types.ReceiptStatusSuccessful
			receipts[i].Logs = []*types.Log{{Address: common.Address{byte(i)}, Topics: []common.Hash{{1}}, Data: []byte{byte(i)}}}
		}
		receipts[i].Bloom = types.CreateBloom(receipts[i])
	}
	return receipts
}

// equalReceipts compares what the receipt trie binds.
func equalReceipts(a, b *types.Receipt) bool {
	x, errX := a.MarshalBinary()
	y, errY := b.MarshalBinary()
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// The receipt of each transaction is proved, with its status and its logs.
func TestReceipts(t *testing.T) {
	w := newWorld(t)
	for i := range w.txs {
		d := w.storageDocument(t)
		require.NoError(t, d.AddTransaction(w.txs, i))
		require.NoError(t, d.AddReceipt(w.header, w.receipts))
		raw, err := json.Marshal(d)
		require.NoError(t, err)
		read, err := Parse(raw)
		require.NoError(t, err)
		r, err := read.Verify(w.trust)
		require.NoError(t, err)
		require.True(t, equalReceipts(w.receipts[i], r.Receipt))
		require.Equal(t, i%5 != 0, r.Receipt.Status == types.ReceiptStatusSuccessful)
		require.Len(t, r.Steps, 5)
		require.Contains(t, r.Steps[4], map[bool]string{true: "receipt: the transaction succeeded (status 1, logs 1)", false: "receipt: the transaction failed (status 0, logs 0)"}[i%5 != 0])
	}
	r, err := w.storageDocument(t).Verify(w.trust)
	require.NoError(t, err)
	require.Nil(t, r.Receipt, "the document has none")

	d := w.blockDocument(t)
	require.ErrorIs(t, d.AddReceipt(w.header, w.receipts), ErrReceipt, "no transaction")
	require.NoError(t, d.AddTransaction(w.txs, 19))
	require.ErrorIs(t, d.AddReceipt(w.header, w.receipts[:19]), ErrReceipt, "no such receipt")
}

func TestForgedReceipt(t *testing.T) {
	w := newWorld(t)
	encode := func(h *types.Header) []byte {
		raw, err := rlp.EncodeToBytes(h)
		require.NoError(t, err)
		return raw
	}
	// The receipts that a liar would like to have, which are in no header of the chain.
	lies := slices.Clone(w.receipts)
	lies[5] = &types.Receipt{Status: types.ReceiptStatusSuccessful}
	liar := types.CopyHeader(w.header)
	liar.ReceiptHash = types.DeriveSha(lies, trie.NewStackTrie(nil))
	other, err := proveEntry(w.receipts, 6)
	require.NoError(t, err)
	refuseAll(t, w, w.receiptDocument, []forgery{
		{"other receipts", func(d *Document) { require.NoError(t, d.AddReceipt(liar, lies)) }, ErrReceipt},
		{"the nodes of other receipts", func(d *Document) {
			header := d.Receipt.Header
			require.NoError(t, d.AddReceipt(liar, lies))
			d.Receipt.Header = header
		}, ErrReceipt},
		{"another transaction's receipt", func(d *Document) { d.Receipt.Nodes = hexNodes(other) }, ErrReceipt},
		{"a transaction for a receipt", func(d *Document) { d.Receipt.Nodes = d.Transaction.Nodes }, ErrReceipt},
		{"truncated", func(d *Document) { d.Receipt.Nodes = d.Receipt.Nodes[:1] }, ErrReceipt},
		{"a node more", func(d *Document) { d.Receipt.Nodes = append(d.Receipt.Nodes, []byte{1}) }, ErrReceipt},
		{"no nodes", func(d *Document) { d.Receipt.Nodes = nil }, ErrReceipt},
		{"no header", func(d *Document) { d.Receipt.Header = nil }, ErrReceipt},
		{"bytes after the header", func(d *Document) { d.Receipt.Header = append(encode(w.header), 0) }, ErrReceipt},
		{"without the transaction", func(d *Document) { d.Claim.Transaction, d.Transaction = common.Hash{}, nil }, ErrMalformed},
		{"another transaction", func(d *Document) { require.NoError(t, d.AddTransaction(w.txs, 6)) }, ErrReceipt},
	})
}

// A service that commits to headers of another kind proves no receipts: the hash may be that of
// anything, and the header may be of another block.
func TestReceiptNeedsTheHeaderOfTheBlock(t *testing.T) {
	for name, change := range map[string]func(w *world) []byte{
		"no header": func(*world) []byte { return []byte("a block of another kind") },
		"the header of other transactions": func(w *world) []byte {
			w.header.TxHash[0] ^= 1
			return nil
		},
		"receipts without a status": func(w *world) []byte {
			w.receipts[5].PostState = bytes.Repeat([]byte{1}, 32)
			w.header.ReceiptHash = types.DeriveSha(w.receipts, trie.NewStackTrie(nil))
			return nil
		},
		"a root of nothing": func(w *world) []byte {
			w.header.ReceiptHash = types.EmptyReceiptsHash
			return nil
		},
	} {
		w := newWorld(t)
		d := &Document{Transaction: &TransactionProof{Index: 5}}
		header := change(w)
		require.NoError(t, d.AddReceipt(w.header, w.receipts))
		c := w.commitment
		if c.Hash = w.header.Hash(); header != nil {
			d.Receipt.Header, c.Hash = header, crypto.Keccak256Hash(header)
		}
		_, err := d.verifyReceipt(&c)
		require.ErrorIs(t, err, ErrReceipt, name)
	}
}

// A document about a block has no transaction, and only VerifyBlock accepts it.
func TestBlockDocument(t *testing.T) {
	w := newWorld(t)
	raw, err := json.Marshal(w.blockDocument(t))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "transaction")
	d, err := Parse(raw)
	require.NoError(t, err)
	r, err := d.VerifyBlock(w.trust)
	require.NoError(t, err)
	require.Equal(t, w.commitment, r.Commitment)
	require.Nil(t, r.Transaction)
	require.Len(t, r.Steps, 3)
	_, err = d.Verify(w.trust)
	require.ErrorIs(t, err, ErrTransaction)

	r, err = w.receiptDocument(t).VerifyBlock(w.trust)
	require.NoError(t, err)
	require.Equal(t, w.txs[5].Hash(), r.Transaction.Hash(), "what a document has is checked")
	forged := w.receiptDocument(t)
	forged.Receipt.Nodes = nil
	_, err = forged.VerifyBlock(w.trust)
	require.ErrorIs(t, err, ErrReceipt)
	d.Claim.Number++
	_, err = d.VerifyBlock(w.trust)
	require.ErrorIs(t, err, ErrState)
}
