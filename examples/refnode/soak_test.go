package main

import (
	"context"
	"flag"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/examples/refnode/devkeys"
)

var soak = flag.Duration("soak", 0, "for how long TestSoak kills builder and chain under load")

// stream is an account that sends, one transaction after another, whatever dies meanwhile.
type stream struct {
	account devkeys.Account
	to      common.Address
	sent    uint64
	last    common.Hash
}

// send gets one transaction into the node, however often that takes, and reports whether it is there.
func (s *stream) send(ctx context.Context, c *ethclient.Client) bool {
	tx := types.MustSignNewTx(s.account.Key, types.LatestSignerForChainID(chainID), transfer(s.sent, s.to))
	for ctx.Err() == nil {
		// No more than a few wait for a block at a time: who fills its room in the pool loses the last ones when blocks are executed anew.
		at, err := c.NonceAt(ctx, s.account.Address, big.NewInt(int64(rpc.LatestBlockNumber)))
		if err == nil && s.sent <= at+24 {
			err := c.SendTransaction(ctx, tx)
			if err == nil || strings.Contains(err.Error(), "already known") || strings.Contains(err.Error(), "nonce too low") {
				s.sent, s.last = s.sent+1, tx.Hash()
				return true
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// TestSoak sends from all accounts for as long as -soak says, on a chain with every fault, and kills the builder, the chain, or both, every few seconds.
// In the end every transaction has run once.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("give -soak 10m, or another time")
	}
	ctx, cancel := context.WithTimeout(t.Context(), *soak+5*time.Minute)
	defer cancel()
	jam := startJAMNode(t, "-slot", "100ms", "-loss", "0.1", "-skip", "0.1", "-fork", "0.1", "-seed", "3")
	b := startBuilder(t, buildNode(t), "-jam", jam.url, "-bundle", "40")
	to := common.Address{0xf7}
	end := time.Now().Add(*soak)
	var sending sync.WaitGroup
	var streams []*stream
	for _, a := range accounts(t) {
		s := &stream{account: a, to: to}
		streams = append(streams, s)
		sending.Go(func() {
			c, err := ethclient.DialContext(ctx, b.url)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for time.Now().Before(end) && s.send(ctx, c) {
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	random := rand.New(rand.NewPCG(7, 7))
	kills := 0
	for ; time.Now().Before(end); kills++ {
		time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
		which, away := random.IntN(4), time.Duration(random.IntN(1500))*time.Millisecond
		if which != 0 {
			b.kill()
		}
		if which <= 1 {
			jam.kill()
		}
		time.Sleep(away)
		if which <= 1 {
			jam.start()
		}
		if which != 0 {
			b.start()
		}
	}
	sending.Wait()
	total := uint64(0)
	for _, s := range streams {
		if s.sent > 0 {
			waitFor(t, dial(t, b.url), s.last, rpc.FinalizedBlockNumber)
		}
		total += s.sent
	}
	require.EqualValues(t, 7*total, b.finish(streams[0].last).balance)
	t.Logf("%d transactions, %d kills", total, kills)
}
