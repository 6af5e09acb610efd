//go:build cgo

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/ethchain"
	"github.com/jamq/jamq/eoa/kms"
	"github.com/jamq/jamq/eoa/memstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Getenv("HSM_PIN"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "hsm:", err)
		os.Exit(1)
	}
}

// command runs the program. The PIN is no flag, because other users see flags.
func command(ctx context.Context, args []string, pin string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("hsm", flag.ContinueOnError)
	module := flags.String("module", "/usr/lib/softhsm/libsofthsm2.so", "PKCS#11 library of the token")
	label := flags.String("token", "jamq", "label of the token")
	name := flags.String("key", "eoa", "label of the key pair")
	create := flags.Bool("create", false, "make the key pair")
	url := flags.String("rpc", "", "URL of a node; empty means that only the address is printed")
	to := flags.String("to", "", "address of the receiver")
	wei := flags.Uint64("wei", 0, "amount to send, in wei")
	if err := flags.Parse(args); err != nil {
		return err
	}
	token, err := openToken(*module, *label, pin)
	if err != nil {
		return err
	}
	defer func() {
		if closed := token.close(); err == nil {
			err = closed
		}
	}()
	if *create {
		if err := token.create(*name); err != nil {
			return err
		}
	}
	key, err := token.key(*name)
	if err != nil {
		return err
	}
	if *url == "" {
		_, err := fmt.Fprintln(out, crypto.PubkeyToAddress(*key.Public))
		return err
	}
	if !common.IsHexAddress(*to) {
		return fmt.Errorf("-to is %q, want an address", *to)
	}
	receiver := common.HexToAddress(*to)
	return send(ctx, key, *url, eoa.Request{Key: "payment", To: &receiver, Value: uint256.NewInt(*wei)}, out)
}

// send carries out one request on the chain of a node, and returns when it is in a block.
func send(ctx context.Context, key kms.Key, url string, q eoa.Request, out io.Writer) error {
	client, err := ethchain.Dial(ctx, url)
	if err != nil {
		return err
	}
	defer client.Close()
	var id hexutil.Uint64
	if err := client.CallContext(ctx, &id, "eth_chainId"); err != nil {
		return err
	}
	chain, err := ethchain.New(client, ethchain.Options{ChainID: uint64(id)})
	if err != nil {
		return err
	}
	signer, err := kms.New(uint64(id), key)
	if err != nil {
		return err
	}
	account := eoa.Account{ChainID: uint64(id), Address: signer.Addresses()[0]}
	cfg := eoa.DefaultConfig()
	cfg.Poll = time.Second / 4 // someone waits for one payment
	e, err := eoa.New(cfg, account, memstore.New(), chain, signer)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(running) }()
	defer func() { stop(); <-done }()
	payment, err := e.Send(ctx, q)
	if err != nil {
		return err
	}
	r, err := payment.Wait(ctx, 0) // Config.Confirmations
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%v from %v: %v\n", r.Tx, account.Address, r.State)
	return err
}
