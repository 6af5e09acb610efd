package ethchain

import (
	"context"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
	_ "github.com/jamq/jamq/eoa/blobs"
	"github.com/jamq/jamq/eoa/memstore"
)

func (n *node) BlobBaseFee() (*hexutil.Big, error) {
	if n.noBlobs {
		return nil, coded{-32601, "the method eth_blobBaseFee does not exist/is not available"}
	}
	return (*hexutil.Big)(big.NewInt(3)), nil
}

func blobRequest(key string, blobs int) eoa.Request {
	q := eoa.Request{Key: key, Kind: eoa.Blob, To: &common.Address{1}, Data: []byte(key)}
	for i := range blobs {
		q.Blobs = append(q.Blobs, make([]byte, eoa.BlobSize))
		q.Blobs[i][31] = byte(i)
	}
	return q
}

// Blobs are sent over HTTP, more than a node reads at once.
func TestBlobsThroughHTTP(t *testing.T) {
	ctx := context.Background()
	s := newSetup(t, 1)
	chain, err := New(s.client, Options{})
	require.NoError(t, err)
	cfg := eoa.DefaultConfig()
	// The first commitment loads the trusted setup, which is slow with -race.
	cfg.Now, cfg.CellProofs, cfg.Timeout = s.clock.Now, false, time.Minute
	e, err := eoa.New(cfg, s.account, memstore.New(), chain, s.node.signer)
	require.NoError(t, err)
	steps := func(key string) {
		for range 20 {
			_, err := e.Step(ctx)
			require.NoError(t, err)
			s.node.chain.Mine()
			s.clock.now = s.clock.now.Add(4 * time.Second)
		}
		r, err := e.Get(ctx, key)
		require.NoError(t, err)
		require.Equal(t, eoa.Final, r.State)
	}
	_, err = e.Submit(ctx, eoa.Request{Key: "plain", To: &common.Address{1}})
	require.NoError(t, err)
	steps("plain")
	const n, each = 9, 3
	for i := range n {
		_, err := e.Submit(ctx, blobRequest(fmt.Sprint(i), each))
		require.NoError(t, err)
	}
	steps(fmt.Sprint(n - 1))
	require.Len(t, s.node.hashes, each)
	txs := s.node.chain.Transactions()
	require.Len(t, txs, 1+n)
	for i, tx := range txs[1:] {
		require.Equal(t, fmt.Sprint(i), string(tx.Data()))
		require.Len(t, tx.BlobTxSidecar().Blobs, each)
	}
}

// A node that does not know the price of blobs is usable.
func TestNoPriceOfBlobs(t *testing.T) {
	s := newSetup(t, 1)
	chain, err := New(s.client, Options{})
	require.NoError(t, err)
	l, err := chain.Look(context.Background(), s.account.Address)
	require.NoError(t, err)
	require.Equal(t, *uint256.NewInt(3), l.BlobFee)
	require.EqualValues(t, 30_000_000, l.GasLimit)
	s.node.noBlobs = true
	l, err = chain.Look(context.Background(), s.account.Address)
	require.NoError(t, err)
	require.True(t, l.BlobFee.IsZero())
	require.NotNil(t, l.Balance)
}

// A transaction's hash does not cover its blobs, whichever form they are sent in.
func TestHashOfBlobs(t *testing.T) {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte(t.Name())))
	require.NoError(t, err)
	blobs := blobRequest("a", 1).Blobs
	want := types.NewTx(&types.BlobTx{ChainID: uint256.NewInt(testChain), Gas: 21_000, BlobHashes: []common.Hash{{1}}})
	tx, err := types.SignTx(want, types.LatestSignerForChainID(big.NewInt(testChain)), key)
	require.NoError(t, err)
	bare, err := tx.MarshalBinary()
	require.NoError(t, err)
	var forms [][]byte
	for _, more := range [][]any{{blobs, [][]byte{{1}}, [][]byte{{2}}}, {uint64(1), blobs, [][]byte{{1}}, [][]byte{{2}}}} {
		body, err := rlp.EncodeToBytes(append([]any{rlp.RawValue(bare[1:])}, more...))
		require.NoError(t, err)
		forms = append(forms, append([]byte{types.BlobTxType}, body...))
	}
	for _, raw := range append(forms, bare) {
		require.Equal(t, eoa.Accepted, sent(nil, tx.Hash(), raw).Result)
	}
	require.Equal(t, eoa.Unknown, sent(nil, crypto.Keccak256Hash(forms[0]), forms[0]).Result)
	for _, raw := range [][]byte{{3}, {3, 0xc0}, {3, 0xc1, 0xc0}, {2, 0xc1, 0xc0}} {
		require.NotPanics(t, func() { hashOf(raw) })
	}
	require.Equal(t, eoa.Unknown, sent(nil, crypto.Keccak256Hash([]byte{3}), forms[0]).Result)
	require.Equal(t, eoa.Accepted, sent(nil, crypto.Keccak256Hash([]byte{3}), []byte{3}).Result, "what is no transaction has a hash too")
}
