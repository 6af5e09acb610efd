package node

import (
	"context"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/statedb"
	"github.com/jamq/jamq/statedb/evm"
)

// A verifier without state can execute an accumulated payload: its witness is
// sufficient, and contains nothing superfluous.
func TestPayloadExecutesOnItsWitness(t *testing.T) {
	n, err := New(DefaultConfig(jamq.Tiny(), 50*time.Millisecond, 1))
	require.NoError(t, err)
	chain := n.jam.(*embedded)
	payloads, take := make(chan []byte, 10), chain.final
	chain.final = func(payload []byte) { take(payload); payloads <- payload }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()

	counter := []byte{0x60, 0x08, 0x60, 0x0c, 0x60, 0x00, 0x39, 0x60, 0x08, 0x60, 0x00, 0xf3, 0x5f, 0x54, 0x60, 0x01, 0x01, 0x5f, 0x55, 0x00}
	for i, data := range []types.TxData{
		&types.LegacyTx{GasPrice: big.NewInt(20e9), Gas: 200_000, Data: counter},
		&types.LegacyTx{GasPrice: big.NewInt(20e9), Gas: 21_000, To: &common.Address{1}, Value: common.Big1},
	} {
		require.NoError(t, n.SendTransaction(types.MustSignNewTx(n.accounts[i].Key, types.LatestSigner(n.chain), data)))
	}
	executed := 0
	for executed < 2 {
		var got transition
		require.NoError(t, rlp.DecodeBytes(<-payloads, &got))
		w, err := statedb.ParseWitness(statedb.EIP7864(), got.Witness)
		require.NoError(t, err)
		view, err := statedb.NewStateless(statedb.EIP7864(), w, got.PreRoot)
		require.NoError(t, err)
		run, err := evm.NewBlock(view, n.chain, got.Block.Header(), n.blockHashes(n.ledger.byNumber(got.Number-1)))
		require.NoError(t, err)
		for _, tx := range got.Block.Transactions() {
			_, err := run.Apply(tx)
			require.NoError(t, err)
			executed++
		}
		require.NoError(t, run.Finish())
		root, err := view.Root()
		require.NoError(t, err)
		require.Equal(t, got.PostRoot, root)
		require.NoError(t, view.Matches(w))
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		require.NoError(t, err)
	}
}
