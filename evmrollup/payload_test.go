package evmrollup

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/evmrollup/devkeys"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
)

// A payload fits into a package that can be signed. Of one that is too large, the header is left.
func TestPayloadFits(t *testing.T) {
	require.Len(t, fitting(make([]byte, maxPayload)), maxPayload)
	require.Len(t, fitting(make([]byte, maxPayload+1)), service.HeaderSize)
	signer, err := service.NewSigner(codec.V072, devkeys.Builder())
	require.NoError(t, err)
	c, err := codec.New(codec.V072, jamq.Full())
	require.NoError(t, err)
	p := codec.OneItem(7, common.Hash{}, common.Hash{}, 1, 1)(make([]byte, maxPayload))
	p.Context.Prerequisites = make([]jamq.PackageHash, jamq.Full().MaxDependencies)
	for i := range p.Context.Prerequisites {
		p.Context.Prerequisites[i][0] = byte(i)
	}
	require.NoError(t, signer.Sign(c, &p))
}

// A payload is refused unless its header is that of its block: number, hash, both roots and the
// transactions.
func TestPayloadMatchesItsHeader(t *testing.T) {
	header := &types.Header{Number: big.NewInt(7), Root: common.Hash{1}, Difficulty: new(big.Int)}
	txs := types.Transactions{types.NewTx(&types.LegacyTx{Nonce: 1})}
	block := types.NewBlock(header, &types.Body{Transactions: txs}, nil, trie.NewStackTrie(nil))
	honest := &Transition{PreRoot: common.Hash{2}, Block: block, Witness: []byte("witness")}
	payload, err := honest.Encode()
	require.NoError(t, err)
	read, err := DecodeTransition(payload)
	require.NoError(t, err)
	require.Equal(t, honest.PreRoot, read.PreRoot)
	require.Equal(t, block.Hash(), read.Block.Hash())
	require.Equal(t, honest.Witness, read.Witness)
	h, err := service.DecodeHeader(payload)
	require.NoError(t, err)
	require.Equal(t, Header(block, honest.PreRoot), h)

	body := payload[service.HeaderSize:]
	for name, change := range map[string]func(*proof.Commitment){
		"another number":     func(c *proof.Commitment) { c.Number++ },
		"another block":      func(c *proof.Commitment) { c.Hash[0]++ },
		"another state":      func(c *proof.Commitment) { c.PostRoot[0]++ },
		"other transactions": func(c *proof.Commitment) { c.TransactionsRoot[0]++ },
	} {
		forged := h
		change(&forged)
		_, err := DecodeTransition(append(service.EncodeHeader(forged), body...))
		require.ErrorIs(t, err, ErrPayload, name)
	}
	for name, other := range map[string]*types.Block{
		"no transactions":     types.NewBlockWithHeader(block.Header()),
		"a number beyond all": types.NewBlockWithHeader(&types.Header{Number: new(big.Int).Add(new(big.Int).Lsh(common.Big1, 64), common.Big1)}),
	} {
		payload, err := (&Transition{Block: other}).Encode()
		require.NoError(t, err)
		_, err = DecodeTransition(payload)
		require.ErrorIs(t, err, ErrPayload, name)
	}
	for name, bad := range map[string][]byte{"short": payload[:service.HeaderSize-1], "block 0": make([]byte, 200)} {
		_, err := DecodeTransition(bad)
		require.ErrorIs(t, err, service.ErrHeader, name)
	}
	empty, err := rlp.EncodeToBytes([]any{[]any{}, []byte{}})
	require.NoError(t, err)
	for name, bad := range map[string][]byte{"nothing": nil, "no block": empty, "cut": body[:len(body)-1], "longer": append(body, 0)} {
		_, err := DecodeTransition(append(service.EncodeHeader(h), bad...))
		require.ErrorIs(t, err, ErrPayload, name)
	}
}
