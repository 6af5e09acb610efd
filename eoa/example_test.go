package eoa_test

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"log/slog"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/ethchain"
	"github.com/jamq/jamq/eoa/memstore"
)

// One account sends a payment and waits until it is three blocks deep.
func Example() {
	const chainID = 1337
	key, _ := crypto.ToECDSA(crypto.Keccak256([]byte("a relayer")))
	account := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	chain := eoatest.New(chainID, 1, 7) // ethchain.New for a node
	cfg := eoa.DefaultConfig()
	cfg.Poll = 5 * time.Millisecond
	cfg.Observe = func(eoa.Report) { chain.Mine() } // this chain has a block after each step
	e, err := eoa.New(cfg, account, memstore.New(), chain, eoa.NewKeySigner(chainID, key))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = e.Run(ctx) }() // works until ctx ends
	payment, err := e.Send(ctx, eoa.Request{Key: "invoice 17", To: &common.Address{1}, Value: uint256.NewInt(1e9)})
	if err != nil {
		fmt.Println(err) // nothing is lost: send it again with the same key
		return
	}
	receipt, err := payment.Wait(ctx, 3) // blocks
	fmt.Println(receipt.State, "nonce", receipt.Nonce, "success", receipt.Success, err)
	// Output: confirmed nonce 0 success true <nil>
}

// The program of the package comment: one payment through a node.
func ExampleClient_Send() {
	pay := func(ctx context.Context, url string, store eoa.Store, key *ecdsa.PrivateKey, to common.Address, wei *uint256.Int) error {
		client, err := ethchain.Dial(ctx, url)
		if err != nil {
			return err
		}
		chain, err := ethchain.New(client, ethchain.Options{ChainID: 1})
		if err != nil {
			return err
		}
		cfg, account := eoa.DefaultConfig(), eoa.Account{ChainID: 1, Address: crypto.PubkeyToAddress(key.PublicKey)}
		cfg.Logger = slog.Default() // for failures that are tried again
		e, err := eoa.New(cfg, account, store, chain, eoa.NewKeySigner(1, key))
		if err != nil {
			return err
		}
		go e.Run(ctx) // works until ctx ends
		payment, err := e.Send(ctx, eoa.Request{Key: "invoice 17", To: &to, Value: wei})
		if err != nil {
			return err
		}
		receipt, err := payment.Wait(ctx, 3) // blocks
		if err != nil {
			return err // for example ErrReverted
		}
		fmt.Println(receipt.Tx, "is in block", receipt.Height, "and used", receipt.GasUsed, "gas")
		return nil
	}
	_ = pay // needs a node
}

// The second request with a key changes nothing. With another payload it is an error.
func ExampleClient_Submit() {
	account := eoa.Account{ChainID: 1337}
	e, _ := eoa.New(eoa.DefaultConfig(), account, memstore.New(), eoatest.New(1337, 1, 7), eoa.NewKeySigner(1337))
	request := eoa.Request{Key: "invoice 17", To: &common.Address{1}, Value: uint256.NewInt(1e9)}
	for _, wei := range []uint64{1e9, 1e9, 2e9} {
		request.Value = uint256.NewInt(wei)
		records, err := e.Submit(context.Background(), request)
		fmt.Println(len(records), err)
	}
	// Output:
	// 1 <nil>
	// 1 <nil>
	// 0 eoa: key belongs to another request: "invoice 17" is the key of record 1 with another payload
}

// A node's answer to a transaction is definite only if its text is known.
func ExampleClassify() {
	for _, text := range []string{"already known", "nonce too low: next nonce 9", "insufficient funds for transfer", "upstream timed out"} {
		reason := eoa.Classify(text)
		fmt.Printf("%-28s %v\n", text, reason.Result())
	}
	// Output:
	// already known                accepted
	// nonce too low: next nonce 9  unknown
	// insufficient funds for transfer rejected
	// upstream timed out           unknown
}

// Events stay in the outbox until they are delivered.
func ExampleDeliver() {
	const chainID = 1337
	key, _ := crypto.ToECDSA(crypto.Keccak256([]byte("a relayer")))
	account := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	store, chain := memstore.New(), eoatest.New(chainID, 1, 1)
	e, _ := eoa.New(eoa.DefaultConfig(), account, store, chain, eoa.NewKeySigner(chainID, key))
	ctx := context.Background()
	_, _ = e.Submit(ctx, eoa.Request{Key: "a", To: &account.Address, Gas: 21_000})
	for range 4 { // a host that drives the steps itself
		_, _ = e.Step(ctx)
		chain.Mine()
		e.NewHead()
	}
	n, err := eoa.Deliver(ctx, store, account, 100, func(_ context.Context, event eoa.Event) error {
		fmt.Println(event.Seq, event.Key, event.Kind)
		return nil
	})
	fmt.Println(n, err)
	// Output:
	// 1 a submitted
	// 2 a mined
	// 3 a final
	// 3 <nil>
}

// Blobs are numbers of 32 bytes below the order of a field, so data goes into 31 bytes of each.
func ExampleRequest_BlobHashes() {
	blob := make([]byte, eoa.BlobSize)
	copy(blob[1:32], "a rollup's data")
	request := eoa.Request{Key: "batch 1", Kind: eoa.Blob, To: new(common.Address), Blobs: [][]byte{blob}, MaxBlobFee: uint256.NewInt(1e9)}
	hashes, err := request.BlobHashes()
	fmt.Printf("%d hash of version %d, %v\n", len(hashes), hashes[0][0], err)
	// Output: 1 hash of version 1, <nil>
}
