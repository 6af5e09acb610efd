package page_test

import (
	"context"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/rpcapi"
	"github.com/jamq/jamq/examples/refnode/lab"
	"github.com/jamq/jamq/examples/refnode/page"
	"github.com/jamq/jamq/internal/wait"
)

// served is a node with the whole server before it, on a real port.
type served struct {
	t      *testing.T
	node   *lab.Node
	url    string
	stop   func()
	nonces map[int]uint64
}

// serve starts a node on an address, until the test ends or stop is called.
func serve(t *testing.T, address string, slot time.Duration, change func(*lab.Config)) *served {
	t.Helper()
	cfg := lab.DefaultConfig(jamq.Tiny(), slot, 1)
	if change != nil {
		change(&cfg)
	}
	n, err := lab.New(cfg)
	require.NoError(t, err)
	handler, end, err := page.Handler(n, rpcapi.DefaultConfig())
	require.NoError(t, err)
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := &http.Server{Handler: handler}
	ended, closed := make(chan error, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- n.Run(ctx) }()
	go func() { closed <- server.Serve(listener) }()
	s := &served{t: t, node: n, url: "http://" + listener.Addr().String(), nonces: make(map[int]uint64)}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		end()
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-closed, http.ErrServerClosed)
		cancel()
		require.NoError(t, <-ended)
	}
	t.Cleanup(s.stop)
	return s
}

// send sends count transfers, from all accounts in turn.
func (s *served) send(count int) {
	s.t.Helper()
	id := s.node.ChainConfig().ChainID
	for range count {
		account := 0
		for i := range s.node.Accounts() {
			if s.nonces[i] < s.nonces[account] {
				account = i
			}
		}
		tx, err := types.SignNewTx(s.node.Accounts()[account].Key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
			ChainID: id, Nonce: s.nonces[account], GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(50 * params.GWei), Gas: 21_000, To: &common.Address{1}, Value: big.NewInt(1),
		})
		require.NoError(s.t, err)
		require.NoError(s.t, s.node.SendTransaction(tx))
		s.nonces[account]++
	}
}

// traffic sends transfers until the test ends or stop is called.
func (s *served) traffic(every time.Duration, count func(tick int) int) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := 0; ctx.Err() == nil; tick++ {
			wait.Pace(ctx, every)
			s.send(count(tick))
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	s.t.Cleanup(stop)
	return stop
}
