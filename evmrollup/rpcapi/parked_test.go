package rpcapi

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/internal/wait"
)

// TestPoolConformance: transactions below the base fee count as pending, as in geth, with the
// later ones of their sender. A replacement is accepted if geth accepts it.
func TestPoolConformance(t *testing.T) {
	b := startBoth(t)
	b.served.node.SetAutomine(false) // an idle chain would lower the base fee
	id, signer := b.served.node.ChainConfig().ChainID, types.LatestSigner(b.served.node.ChainConfig())
	send := func(account int, nonce uint64, price, tip int64) {
		t.Helper()
		raw, err := types.MustSignNewTx(b.served.node.Accounts()[account].Key, signer, &types.DynamicFeeTx{
			ChainID: id, Nonce: nonce, GasFeeCap: big.NewInt(price), GasTipCap: big.NewInt(tip), Gas: 21_000, To: &common.Address{1},
		}).MarshalBinary()
		require.NoError(t, err)
		errOfOurs := b.ours.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw))
		errOfGeth := b.geths.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw))
		require.Equal(t, errOfGeth == nil, errOfOurs == nil, "%d of %d at %d, %d: %v, and geth's is %v", nonce, account, price, tip, errOfOurs, errOfGeth)
		for _, x := range []try{
			{"txpool_status", constant(nil), ""}, {"txpool_content", constant(nil), ""}, {"txpool_inspect", constant(nil), ""},
			{"txpool_contentFrom", constant([]any{b.served.node.Accounts()[account].Address}), ""},
			{"eth_getTransactionCount", constant([]any{b.served.node.Accounts()[account].Address, "pending"}), ""},
		} {
			// geth counts a transaction as pending some time after the answer.
			wait.Until(t, func() bool { return x.difference(t, b) == nil }, "both nodes answer %s alike", x.method)
		}
	}
	send(5, 0, 1000, 1)
	send(5, 1, 10*params.GWei, 1)
	send(5, 3, 1000, 1)
	send(6, 0, 10*params.GWei, 1)
	send(6, 1, 1000, 1)
	const price, tip int64 = 20_000_000_007, 1_234_567_891
	send(7, 0, price, tip)
	for _, less := range []int64{1, 0} {
		send(7, 0, price*11/10-less, tip*2)
		send(7, 0, price*2, tip*11/10-less)
	}
	send(5, 0, 1000, 2)
	send(5, 0, 1001, 2)
	send(5, 0, 1100, 2)
}
