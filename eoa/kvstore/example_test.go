package kvstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/kvstore"
	"github.com/jamq/jamq/eoa/memstore"
)

// counted is a custom key-value store. It counts writes and uses a map for the
// rest.
type counted struct {
	kvstore.KV
	writes int
}

func (c *counted) Write(ctx context.Context, entries []kvstore.Entry) error {
	c.writes++
	return c.KV.Write(ctx, entries)
}

// Three methods make a store. Every step of an account is one atomic, durable
// write.
func Example() {
	kv := &counted{KV: memstore.NewKV()}
	store := kvstore.New(kv)
	account := eoa.Account{ChainID: 1337, Address: common.Address{1}}
	records, err := store.Submit(context.Background(), account, time.Unix(1_800_000_000, 0),
		eoa.Request{Key: "a", To: &common.Address{2}, Gas: 21_000}, eoa.Request{Key: "b", To: &common.Address{2}, Gas: 21_000})
	fmt.Println(len(records), "requests in", kv.writes, "write", err)
	// Output: 2 requests in 1 write <nil>
}
