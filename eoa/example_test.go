package eoa_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/memstore"
)

// One account sends a transfer and waits until it is confirmed.
func Example() {
	const chainID = 1337
	key, _ := crypto.ToECDSA(crypto.Keccak256([]byte("a relayer")))
	account := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	chain := eoatest.New(chainID, 1, 2) // ethchain.New for a node

	cfg := eoa.DefaultConfig()
	cfg.Poll = 5 * time.Millisecond
	e, err := eoa.New(cfg, account, memstore.New(), chain, eoa.NewKeySigner(chainID, key))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error)
	go func() { ended <- e.Run(ctx) }()

	request := eoa.Request{Key: "invoice 17", To: &common.Address{1}, Value: uint256.NewInt(1e9)}
	for range 2 { // the second submit changes nothing
		if _, err := e.Submit(ctx, request); err != nil {
			fmt.Println(err)
		}
	}
	var record eoa.Record
	for err == nil && record.State != eoa.Final { // a program calls Wait; here the blocks are ours
		chain.Mine()
		record, err = e.Get(ctx, request.Key)
	}
	fmt.Println(record.State, "nonce", record.Nonce, err)

	request.Value = uint256.NewInt(2e9)
	_, err = e.Submit(ctx, request)
	fmt.Println(err)
	stop()
	fmt.Println(<-ended)
	// Output:
	// final nonce 0 <nil>
	// eoa: key belongs to another request: "invoice 17" is the key of record 1 with another payload
	// context canceled
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
