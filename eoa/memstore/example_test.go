package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/memstore"
)

// A key identifies a request. Submitting it again returns the same record, and
// another payload is an error.
func Example() {
	ctx, now := context.Background(), time.Unix(1_800_000_000, 0)
	account := eoa.Account{ChainID: 1337, Address: common.Address{1}}
	store := memstore.New()
	request := eoa.Request{Key: "invoice 17", To: &common.Address{2}, Gas: 21_000}
	for range 2 {
		records, err := store.Submit(ctx, account, now, request)
		fmt.Println("record", records[0].ID, records[0].State, err)
	}
	request.Gas++
	_, err := store.Submit(ctx, account, now, request)
	fmt.Println(errors.Is(err, eoa.ErrKeyReused))
	// Output:
	// record 1 pending <nil>
	// record 1 pending <nil>
	// true
}
