package ratelimit_test

import (
	"fmt"
	"time"

	"github.com/jamq/jamq/ratelimit"
)

func ExampleLimiter() {
	cfg := ratelimit.DefaultConfig()
	cfg.Source = ratelimit.Rate{Txs: 1, TxBurst: 2}
	now := time.Unix(1_800_000_000, 0)
	cfg.Now = func() time.Time { return now }
	limiter, err := ratelimit.New(cfg)
	if err != nil {
		panic(err)
	}
	for range 3 {
		fmt.Println(limiter.Allow("192.0.2.1", "eth_sendRawTransaction", 1, 110))
	}
	// Output:
	// <nil>
	// <nil>
	// rate limit exceeded: source, try again in 1s
}
