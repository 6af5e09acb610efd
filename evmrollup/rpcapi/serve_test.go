package rpcapi

import (
	"context"
	"math/big"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/internal/wait"
)

// served is a node on an embedded chain that is fast, behind the real handler.
type served struct {
	t      *testing.T
	node   *node.Node
	server *httptest.Server
	nonces map[int]uint64 // of the accounts' next transactions

	filters *filters
}

// serve runs a node until the test ends. change may adjust its configuration.
func serve(t *testing.T, change func(*node.Config, *Config)) *served {
	t.Helper()
	cfg, api := node.DefaultConfig(jamq.Tiny(), 50*time.Millisecond, 1), DefaultConfig()
	if change != nil {
		change(&cfg, &api)
	}
	n, err := node.New(cfg)
	require.NoError(t, err)
	door, err := newDoor(n, &api)
	require.NoError(t, err)
	s := &served{t: t, node: n, filters: door.filters, server: httptest.NewServer(door), nonces: make(map[int]uint64)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		door.stop()
		s.server.Close()
		cancel()
		require.NoError(t, <-ended)
	})
	wait.Until(t, func() bool {
		_, err := n.QueueStats(t.Context())
		return err == nil
	}, "the node starts")
	return s
}

func (s *served) ws() string { return "ws" + strings.TrimPrefix(s.server.URL, "http") }

// dial returns a client, over HTTP or WebSocket as the URL says.
func (s *served) dial(url string, options ...rpc.ClientOption) *rpc.Client {
	s.t.Helper()
	c, err := rpc.DialOptions(s.t.Context(), url, options...)
	require.NoError(s.t, err)
	s.t.Cleanup(c.Close)
	return c
}

func (s *served) eth(url string) *ethclient.Client { return ethclient.NewClient(s.dial(url)) }

// sign signs the next transaction of an account: to a contract or a person, or without a receiver
// to deploy.
func (s *served) sign(account int, to *common.Address, value int64, data []byte) *types.Transaction {
	s.t.Helper()
	id := s.node.ChainConfig().ChainID
	tx, err := types.SignNewTx(s.node.Accounts()[account].Key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, Nonce: s.nonces[account], GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei), Gas: 200_000, To: to,
		Value: big.NewInt(value), Data: data,
	})
	require.NoError(s.t, err)
	s.nonces[account]++
	return tx
}

// send sends the next transaction of an account.
func (s *served) send(account int, to *common.Address, value int64, data []byte) *types.Transaction {
	s.t.Helper()
	tx := s.sign(account, to, value, data)
	require.NoError(s.t, s.node.SendTransaction(tx))
	return tx
}

// mined waits for a transaction's receipt.
func (s *served) mined(tx *types.Transaction) *types.Receipt {
	s.t.Helper()
	c := s.eth(s.server.URL)
	var receipt *types.Receipt
	wait.Until(s.t, func() (found bool) {
		var err error
		receipt, err = c.TransactionReceipt(s.t.Context(), tx.Hash())
		return err == nil
	}, "the transactions are in blocks")
	return receipt
}

// receipt returns the receipt of a transaction that is mined.
func (s *served) receipt(tx common.Hash) *types.Receipt {
	s.t.Helper()
	receipt, err := s.eth(s.server.URL).TransactionReceipt(s.t.Context(), tx)
	require.NoError(s.t, err)
	return receipt
}

// counter deploys a contract that adds one to slot 0, logs the new value under topic 7 and returns
// it; called with data, it reverts with it.
func (s *served) counter(account int) common.Address {
	s.t.Helper()
	code := []byte{
		0x36, 0x60, 0x14, 0x57, // CALLDATASIZE PUSH1 20 JUMPI
		0x5f, 0x54, 0x60, 1, 0x01, 0x80, 0x5f, 0x55, // PUSH0 SLOAD PUSH1 1 ADD DUP1 PUSH0 SSTORE
		0x5f, 0x52, 0x60, 7, 0x60, 32, 0x5f, 0xa1, // PUSH0 MSTORE PUSH1 7 PUSH1 32 PUSH0 LOG1
		0x5b,                   // JUMPDEST
		0x36, 0x60, 0x1d, 0x57, // CALLDATASIZE PUSH1 29 JUMPI
		0x60, 32, 0x5f, 0xf3, // PUSH1 32 PUSH0 RETURN
		// JUMPDEST CALLDATASIZE PUSH0 PUSH0 CALLDATACOPY CALLDATASIZE PUSH0 REVERT
		0x5b, 0x36, 0x5f, 0x5f, 0x37, 0x36, 0x5f, 0xfd,
	}
	init := append([]byte{0x60, byte(len(code)), 0x80, 0x60, 10, 0x5f, 0x39, 0x5f, 0xf3, 0}, code...)
	s.mined(s.send(account, nil, 0, init))
	return crypto.CreateAddress(s.node.Accounts()[account].Address, s.nonces[account]-1)
}

// code returns the JSON-RPC code of an error, or 0.
func code(err error) int {
	if e, ok := err.(rpc.Error); ok {
		return e.ErrorCode()
	}
	return 0
}
