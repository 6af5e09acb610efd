// Custombuilder is a builder with its own block order, its own kind of block, and
// its own way of sending. Updates of a price oracle come first in a block, and
// each package goes to two guarantors at once. It uses the mempool and the builder
// of jamq and writes three small parts:
//
//	ordering.go    the order of a block (txpool.Config.Score)
//	rollup.go      the blocks, and how they are executed (builder.Rollup)
//	broadcast.go   the way to guarantors (builder.Network)
//
// main.go connects them on a simulated JAM chain.
//
//	go run ./examples/custombuilder
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/big"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/journal"
)

var (
	chainID = big.NewInt(4359)
	oracle  = common.HexToAddress("0xac1e000000000000000000000000000000000001")
)

const (
	users    = 12
	perBlock = 4

	blockGas    = 30_000_000
	transferGas = 21_000
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	say := log.New(out, "", 0)
	net, err := simnet.Tiny(100*time.Millisecond, service, func(c *jamtest.Config) { c.LossProbability = 0.2 })
	if err != nil {
		return err
	}
	r, err := newRollup(say)
	if err != nil {
		return err
	}
	network := broadcaster{net}
	b, err := builder.Open(ctx, builder.DefaultConfig(net.Spec()), new(journal.Memory), r, network)
	if err != nil {
		return err
	}
	// All transactions wait when the builder starts, so that its blocks are full.
	if err := traffic(ctx, b); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return network.Run(ctx, nil) })
	group.Go(func() error { return b.Run(ctx) })
	group.Go(func() error {
		return b.Watch(ctx, 0, func(events []builder.Event, _ canonical.Heads) error { show(say, events); return nil })
	})
	awaited := b.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number == users/perBlock })
	stop()
	if err := group.Wait(); awaited != nil {
		return err // it is the reason why ctx ended
	}
	return nil
}

// show prints how far blocks have come.
func show(say *log.Logger, events []builder.Event) {
	for _, e := range events {
		if e, ok := e.Effect.(bundlequeue.Changed); ok && e.To >= bundlequeue.Submitted {
			say.Printf("block %d: %s", e.Number, e.To)
		}
	}
}

// traffic submits one transaction of each user.
func traffic(ctx context.Context, b *builder.Builder[batch]) error {
	for i := range users {
		op, err := transaction(i)
		if err != nil {
			return err
		}
		if err := b.Submit(ctx, op); err != nil {
			return err
		}
	}
	return nil
}

// transaction returns the transaction of a user. Every third one is an oracle's and
// pays the least.
func transaction(user int) ([]byte, error) {
	key, err := crypto.ToECDSA(crypto.Keccak256(fmt.Appendf(nil, "user %d", user)))
	if err != nil {
		return nil, err
	}
	to, tip := common.Address{1}, int64(2+user)
	if user%3 == 0 {
		to, tip = oracle, 1
	}
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(chainID), &types.LegacyTx{GasPrice: big.NewInt(tip * 1e9), Gas: transferGas, To: &to})
	if err != nil {
		return nil, err
	}
	return tx.MarshalBinary()
}
