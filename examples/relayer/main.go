// Command relayer sends transfers from one account through the executor of package eoa, and shows how they do.
//
//	go run ./relayer -n 500                                   # on a chain of its own, which ends with the program
//	go run ./relayer -serve 127.0.0.1:8545                    # such a chain, for others
//	go run ./relayer -n 500 -rpc http://127.0.0.1:8545 -datadir /tmp/relayer
//
// With -datadir it may be killed at any moment and started again with the same -n: nothing is sent twice.
package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/jamq/jamq/eoa/ethchain"
)

func main() {
	if err := start(); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "relayer:", err)
		os.Exit(1)
	}
}

// developer is the account of the embedded chain. Everybody knows its key.
func developer() *ecdsa.PrivateKey {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("the relayer's developer")))
	if err != nil {
		panic(err)
	}
	return key
}

func start() error {
	o := relay{out: os.Stdout, key: developer()}
	flag.IntVar(&o.n, "n", 200, "how many transfers")
	flag.StringVar(&o.dir, "datadir", "", "where the requests and their transactions are kept; empty means in memory")
	url := flag.String("rpc", "", "a node; empty means a chain of the program's own")
	serve := flag.String("serve", "", "serve a chain at this loopback address instead of sending")
	secret := flag.String("keyfile", "", "a file with the account's key, in hex; empty means the embedded chain's developer")
	blocks := flag.Duration("blocks", 500*time.Millisecond, "time between blocks of the embedded chain")
	flag.Uint64Var(&o.finality, "finality", 2, "how many blocks make a block final; 0 means that the node says it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *secret != "" {
		raw, err := os.ReadFile(*secret)
		if err != nil {
			return err
		}
		if o.key, err = crypto.HexToECDSA(strings.TrimPrefix(strings.TrimSpace(string(raw)), "0x")); err != nil {
			return fmt.Errorf("-keyfile: %w", err)
		}
	}
	if *serve != "" {
		return serveChain(ctx, *serve, *blocks)
	}
	if *url == "" {
		chain, err := newChain("127.0.0.1:0", *blocks, o.key)
		if err != nil {
			return err
		}
		defer chain.close()
		*url = chain.url
	}
	client, err := ethchain.Dial(ctx, *url)
	if err != nil {
		return err
	}
	defer client.Close()
	return o.run(ctx, client)
}

// serveChain serves the embedded chain until ctx ends.
func serveChain(ctx context.Context, address string, blocks time.Duration) error {
	chain, err := newChain(address, blocks, developer())
	if err != nil {
		return err
	}
	defer chain.close()
	fmt.Println("a chain at", chain.url)
	<-ctx.Done()
	return nil
}
