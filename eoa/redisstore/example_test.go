package redisstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/redis/go-redis/v9"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/redisstore"
)

// Any process that reaches the server may submit. Leases decide which process
// sends. The example has no output, because it needs a server.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer func() { _ = client.Close() }()
	store, err := redisstore.New(client, "jamq", redisstore.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	account := eoa.Account{ChainID: 1337, Address: common.Address{1}}
	records, err := store.Submit(context.Background(), account, time.Now(), eoa.Request{Key: "invoice 17", To: &common.Address{2}, Gas: 21_000})
	fmt.Println(records, err)
}
