// Command relayer sends transfers from one account with a fleet of package eoa, and
// prints their progress. Problems, for example an account without funds, are logged.
//
//	go run ./examples/relayer -n 500    # on an embedded chain
//	go run ./examples/relayer -n 500 -rpc http://127.0.0.1:8545 -datadir relayer
//
// With -datadir the program may be killed at any moment and started again with
// the same -n: it sends nothing twice.
package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/jamq/jamq/eoa/ethchain"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command runs the program. It returns 1 if a transfer has not ended, and 2
// after a usage error.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("relayer", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o := relay{out: stdout, log: slog.New(slog.NewTextHandler(stderr, nil)), key: developer()}
	flags.IntVar(&o.n, "n", 200, "number of transfers, at least 1")
	flags.StringVar(&o.dir, "datadir", "", "directory of the requests and their transactions; empty means in memory")
	url := flags.String("rpc", "", "URL of a node; empty means an embedded chain")
	secret := flags.String("keyfile", "", "file with the account's key, in hex; empty means the developer account of the embedded chain")
	blocks := flags.Duration("blocks", 500*time.Millisecond, "time between blocks of the embedded chain")
	flags.StringVar(&o.metrics, "metrics", "", "address of /metrics and /healthz for operators; empty means none")
	flags.Uint64Var(&o.finality, "finality", 2, "number of blocks on top that make a block final; 0 means the node's tag finalized")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && o.n < 1:
		err = fmt.Errorf("-n is %d, want at least 1", o.n)
	case err == nil && *blocks <= 0:
		err = fmt.Errorf("-blocks is %v, want more than 0", *blocks)
	}
	if err != nil {
		fmt.Fprintln(stderr, "relayer:", err)
		return 2
	}
	if err := o.start(ctx, *url, *secret, *blocks); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("stopped before all transfers were over: %w", context.Cause(ctx))
		}
		fmt.Fprintln(stderr, "relayer:", err)
		return 1
	}
	return 0
}

// developer returns the key of the embedded chain's account. It is public.
func developer() *ecdsa.PrivateKey {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("the relayer's developer")))
	if err != nil {
		panic(err)
	}
	return key
}

// start reads the key, connects to the chain, and sends.
func (r *relay) start(ctx context.Context, url, secret string, blocks time.Duration) error {
	if secret != "" {
		raw, err := os.ReadFile(secret)
		if err != nil {
			return err
		}
		if r.key, err = crypto.HexToECDSA(strings.TrimPrefix(strings.TrimSpace(string(raw)), "0x")); err != nil {
			return fmt.Errorf("-keyfile: %w", err)
		}
	}
	if url == "" {
		chain, err := newChain(blocks, r.key)
		if err != nil {
			return err
		}
		defer chain.close()
		url = chain.url
	}
	client, err := ethchain.Dial(ctx, url)
	if err != nil {
		return err
	}
	defer client.Close()
	return r.run(ctx, client)
}
