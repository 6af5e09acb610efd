package rpcapi

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"
)

// subscribed are the subscriptions that TestSubscriptionConformance compares,
// by their methods.
var subscribed = map[string]string{
	"eth_newHeads": "newHeads", "eth_logs": "logs", "eth_newPendingTransactions": "newPendingTransactions", "eth_transactionReceipts": "transactionReceipts",
}

// Both nodes send the same about the same transaction, and refuse the same
// subscriptions.
func TestSubscriptionConformance(t *testing.T) {
	b := startBoth(t)
	socket := b.served.dial(b.served.ws())
	b.served.nonces[5] = 0
	tx := b.served.sign(5, &b.counter, 0, nil)
	hashes := func(list ...common.Hash) any { return map[string]any{"transactionHashes": list} }
	streams := [2]map[string]chan any{}
	for i, client := range []*rpc.Client{socket, b.geths} {
		streams[i] = map[string]chan any{}
		for name, args := range map[string][]any{
			"heads": {"newHeads"}, "hashes": {"newPendingTransactions"}, "transactions": {"newPendingTransactions", true},
			"logs": {"logs", map[string]any{"address": b.counter}}, "receipts": {"transactionReceipts"}, "all receipts": {"transactionReceipts", hashes()},
			"one receipt": {"transactionReceipts", hashes(tx.Hash(), common.Hash{1})}, "another receipt": {"transactionReceipts", hashes(common.Hash{1})},
		} {
			stream := make(chan any, 16)
			_, err := client.EthSubscribe(t.Context(), stream, args...)
			require.NoError(t, err)
			streams[i][name] = stream
		}
	}
	for _, args := range [][]any{
		{"newHead"}, {"logs", map[string]any{"topics": make([]any, 5)}}, {"logs", map[string]any{"fromBlock": "pending"}}, {"logs", map[string]any{"toBlock": "pending"}},
		{"logs", map[string]any{"fromBlock": "0x5", "toBlock": "0x1"}}, {"logs", 1}, {"newPendingTransactions", 1}, {"newHeads", 1}, {},
		{"transactionReceipts", 1}, {"transactionReceipts", map[string]any{"transactionHashes": 1}}, {"transactionReceipts", hashes(make([]common.Hash, 201)...)},
	} {
		_, want := b.geths.EthSubscribe(t.Context(), make(chan any), args...)
		_, err := socket.EthSubscribe(t.Context(), make(chan any), args...)
		require.NoError(t, sameError(err, want), "%v", args)
	}
	raw, err := tx.MarshalBinary()
	require.NoError(t, err)
	for i, client := range []*rpc.Client{socket, b.geths} {
		require.NoError(t, client.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw)))
		for _, name := range []string{"hashes", "transactions"} {
			streams[i][name] <- next(t, streams[i][name]) // arrived
		}
	}
	b.geth.beacon.Commit()
	b.served.mined(tx)
	for name := range streams[0] {
		if name == "another receipt" {
			require.Empty(t, streams[0][name])
			continue
		}
		require.NoError(t, same(name, next(t, streams[0][name]), next(t, streams[1][name])))
	}
}
