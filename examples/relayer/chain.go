package main

import (
	"context"
	"crypto/ecdsa"
	"math/big"
	"net"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"
)

// chain is go-ethereum's simulated chain, with a real pool and EVM. The program
// decides when it makes a block. It is used over HTTP and ends with the
// program.
type chain struct {
	backend *simulated.Backend
	url     string
	stop    context.CancelFunc
	stopped chan struct{}
}

// newChain starts a chain with a block at each interval and funded accounts.
func newChain(blocks time.Duration, rich ...*ecdsa.PrivateKey) (*chain, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	at := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil { // go-ethereum listens again
		return nil, err
	}
	alloc := types.GenesisAlloc{}
	for _, key := range rich {
		alloc[crypto.PubkeyToAddress(key.PublicKey)] = types.Account{Balance: new(big.Int).Lsh(big.NewInt(1), 100)}
	}
	b := simulated.NewBackend(alloc, func(n *node.Config, c *ethconfig.Config) {
		n.HTTPHost, n.HTTPPort, n.HTTPModules, n.BatchResponseMaxSize = "127.0.0.1", at.Port, []string{"eth"}, 64<<20
		c.TxPool.AccountSlots, c.TxPool.AccountQueue, c.TxPool.GlobalSlots = 8192, 8192, 16384
	})
	ctx, stop := context.WithCancel(context.Background())
	c := &chain{backend: b, url: "http://" + at.String(), stop: stop, stopped: make(chan struct{})}
	go c.mine(ctx, blocks)
	return c, nil
}

func (c *chain) mine(ctx context.Context, every time.Duration) {
	defer close(c.stopped)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.backend.Commit()
		}
	}
}

func (c *chain) close() {
	c.stop()
	<-c.stopped
	_ = c.backend.Close()
}
