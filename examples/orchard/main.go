// Orchard is a rollup without an EVM on package builder. Its blocks contain
// shielded actions like those of Zcash's Orchard pool. Each action spends a
// note, by its nullifier, and creates a note, by a commitment and an encrypted
// text. Wallets find their notes by scanning blocks through getblock, which has
// the form of zcashd's (verbosity 0, 1 and 2). It also returns the JAM work
// package and the JAM block of each block, and whether the block is final. rpc.go has
// the other calls that a light wallet needs.
//
// The bytes of blocks and transactions are not Zcash's:
//
//   - A header of Zcash has a proof of work, which a rollup on JAM does not need, and
//     commits to the history of the chain. Here it has the height, the hash of the block
//     before it, the roots of transactions and notes, the number of notes and the time.
//   - A transaction has only the Orchard part of ZIP 225, because there are no other pools.
//   - Hashes are SHA-256 and shown in the order of their bytes. Zcash's ids are BLAKE2b
//     (ZIP 244) and its roots those of a Sinsemilla tree, which need libraries for Zcash.
//
// Orchard shows what a rollup of another kind writes itself: rollup.go has its
// state, and node.go connects it to the builder and to wallets. It is not a
// shielded pool: proofs and signatures have their real sizes but are not verified,
// so anyone can create notes. Value balances are shown but not checked.
//
//	go run ./examples/orchard                         # two wallets pay each other
//	go run ./examples/orchard -http 127.0.0.1:8232    # then serve RPC until stopped
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"golang.org/x/sync/errgroup"

	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/jamtest"
)

func main() {
	address := flag.String("http", "", "address to serve on, and go on serving; empty: the demonstration only")
	slot := flag.Duration("slot", 150*time.Millisecond, "slot duration of the simulated JAM chain")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, *address, *slot); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "orchard:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, address string, slot time.Duration) error {
	network, err := simnet.Tiny(slot, service, func(c *jamtest.Config) { c.LossProbability, c.SkipProbability = 0.2, 0.1 })
	if err != nil {
		return err
	}
	n, err := newNode(ctx, network)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cmp.Or(address, "127.0.0.1:0"))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: n, ReadHeaderTimeout: 10 * time.Second}
	ctx, stop := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	defer func() { stop(); _ = group.Wait() }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error { return n.run(ctx) })

	url := "http://" + listener.Addr().String()
	fmt.Fprintf(out, "getblock and the rest at %s\n", url)
	if err := demonstrate(ctx, out, url); err != nil || address == "" {
		return err
	}
	return group.Wait()
}

// payments is the number of payments that each wallet makes.
const payments = 5

// demonstrate creates notes for bob, and bob spends them back to alice. Both
// wallets only scan blocks.
func demonstrate(ctx context.Context, out io.Writer, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := rpc.DialContext(ctx, url)
	if err != nil {
		return err
	}
	defer client.Close()
	alice, bob := newWallet(client, "alice"), newWallet(client, "bob")
	for range payments {
		if err := alice.pay(ctx, bob, nil); err != nil {
			return err
		}
	}
	if err := scanUntil(ctx, func() bool { return len(bob.unspent()) == payments }, bob); err != nil {
		return err
	}
	for _, n := range bob.unspent() {
		fmt.Fprintf(out, "bob has a note: %s…, JAM block %s…\n", n.cmx.String()[:8], n.headerAt[:10])
		if err := bob.pay(ctx, alice, n); err != nil {
			return err
		}
	}
	settled := func() bool {
		all := slices.Concat(alice.notes, bob.notes)
		return len(alice.unspent()) == payments && len(bob.unspent()) == 0 &&
			!slices.ContainsFunc(all, func(n *note) bool { return !n.finalized })
	}
	if err := scanUntil(ctx, settled, alice, bob); err != nil {
		return err
	}
	err = bob.pay(ctx, alice, bob.notes[0])
	fmt.Fprintf(out, "bob spends a note again: %v\n", err)
	fmt.Fprintf(out, "%d notes made, %d spent, all of it final\n", len(alice.notes)+len(bob.notes), len(bob.notes))
	return nil
}

// scanUntil lets wallets scan until done returns true.
func scanUntil(ctx context.Context, done func() bool, wallets ...*wallet) error {
	for {
		for _, w := range wallets {
			if err := w.scan(ctx); err != nil {
				return err
			}
		}
		if done() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not in time: %w", context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
