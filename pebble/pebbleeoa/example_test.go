package pebbleeoa_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/pebble/pebbleeoa"
)

// A store that is opened again has everything that it accepted.
func Example() {
	dir, err := os.MkdirTemp("", "store")
	must(err)
	defer func() { must(os.RemoveAll(dir)) }()
	account := eoa.Account{ChainID: 1337, Address: common.Address{1}}
	ctx := context.Background()

	store, err := pebbleeoa.Open(dir, pebbleeoa.Options{})
	must(err)
	_, err = store.Submit(ctx, account, time.Now(), eoa.Request{Key: "invoice 17", To: &common.Address{2}, Gas: 21_000})
	must(err)
	must(store.Close())

	store, err = pebbleeoa.Open(dir, pebbleeoa.Options{})
	must(err)
	record, err := store.Get(ctx, account, "invoice 17")
	must(err)
	fmt.Println(record.ID, record.State)
	must(store.Close())
	// Output: 1 pending
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
