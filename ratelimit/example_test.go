package ratelimit_test

import (
	"fmt"
	"time"

	"github.com/jamq/jamq/ratelimit"
)

func ExampleLimiter() {
	cfg := ratelimit.DefaultConfig()
	cfg.Source = ratelimit.Rate{Txs: 1, TxBurst: 2}
	cfg.Jitter = 0
	now := time.Unix(1_800_000_000, 0)
	cfg.Now = func() time.Time { return now }
	limiter, err := ratelimit.New(cfg)
	if err != nil {
		panic(err)
	}
	for range 3 {
		fmt.Println(limiter.Allow(ratelimit.Call{Source: "192.0.2.1", Method: "eth_sendRawTransaction", Txs: 1, Bytes: 110}))
	}
	// Output:
	// <nil>
	// <nil>
	// rate limit exceeded: source, try again in 1s
}
