package ratelimit_test

import (
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"

	"github.com/jamq/jamq/ratelimit"
	"github.com/jamq/jamq/txpool"
)

// newLimiter returns a limiter with a fixed time and without chance, so that the
// output of an example is always the same.
func newLimiter(cfg ratelimit.Config) *ratelimit.Limiter {
	cfg.Now = func() time.Time { return time.Unix(1_800_000_000, 0) }
	cfg.Rand = func() float64 { return 0 }
	limiter, err := ratelimit.New(cfg)
	if err != nil {
		panic(err)
	}
	return limiter
}

// Limit a source, and read the time to wait from the error.
func ExampleLimiter_Allow() {
	cfg := ratelimit.DefaultConfig()
	cfg.Source = ratelimit.Rate{Txs: 1, TxBurst: 2}
	limiter := newLimiter(cfg)
	for range 3 {
		err := limiter.Allow(ratelimit.Call{Source: "192.0.2.1", Method: "eth_sendRawTransaction", Txs: 1, Bytes: 110})
		var limit *ratelimit.Error
		if errors.As(err, &limit) {
			fmt.Println("refused by", limit.Limit, "for", limit.RetryAfter)
			continue
		}
		fmt.Println("admitted")
	}
	// Output:
	// admitted
	// admitted
	// refused by source for 1s
}

// Keep one connection of a shared address from using up the limit of the others.
func ExampleCall_connection() {
	cfg := ratelimit.DefaultConfig()
	cfg.Source = ratelimit.Rate{Txs: 10, TxBurst: 3}
	cfg.Connection = ratelimit.Rate{Txs: 5, TxBurst: 2}
	limiter := newLimiter(cfg)
	for _, connection := range []string{"192.0.2.1:1001", "192.0.2.1:1001", "192.0.2.1:1001", "192.0.2.1:1002"} {
		fmt.Println(limiter.Allow(ratelimit.Call{Source: "192.0.2.1", Connection: connection, Txs: 1}))
	}
	limiter.Forget("192.0.2.1", "192.0.2.1:1001") // when it is closed
	// Output:
	// <nil>
	// <nil>
	// rate limit exceeded: connection, try again in 200ms
	// <nil>
}

// Pace the calls that add transactions while the pool is nearly full.
func ExampleSurge() {
	pending, capacity := 95.0, 100.0 // a host reads these from its pool
	cfg := ratelimit.DefaultConfig()
	cfg.Surge.Methods = []string{"eth_sendRawTransaction"}
	cfg.Surge.Pressure = func() float64 { return pending / capacity }
	limiter := newLimiter(cfg)

	send := ratelimit.Call{Source: "192.0.2.1", Method: "eth_sendRawTransaction", Txs: 1, Bytes: 110}
	fmt.Println(limiter.Allow(send))
	pending = 50
	fmt.Println(limiter.Allow(send))
	// Output:
	// node is busy: surge, try again in 1s
	// <nil>
}

// rich is a chain on which every account has an ether.
type rich struct{}

func (rich) Account(common.Address) (txpool.Account, error) {
	return txpool.Account{Balance: *uint256.NewInt(1e18)}, nil
}

// Ban the source of invalid transactions. The sender that they name is not
// affected.
func ExampleLimiter_Strike() {
	cfg := ratelimit.DefaultConfig()
	cfg.Strikes = 2
	limiter := newLimiter(cfg)
	chainID := big.NewInt(4359)
	pool, err := txpool.New(txpool.DefaultConfig(chainID), rich{})
	if err != nil {
		panic(err)
	}
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("example")))
	if err != nil {
		panic(err)
	}
	send := func(source string, gas uint64) error {
		tx := types.MustSignNewTx(key, types.LatestSignerForChainID(chainID), &types.LegacyTx{
			GasPrice: big.NewInt(2e9), Gas: gas, To: &common.Address{1},
		})
		if err := limiter.Allow(ratelimit.Call{Source: source, Txs: 1, Bytes: int(tx.Size())}); err != nil {
			return err
		}
		err := pool.Add(tx)
		switch {
		case txpool.Spam(err):
			limiter.Strike(source, ratelimit.Invalid)
		case txpool.Underpriced(err):
			limiter.Strike(source, ratelimit.Underpriced)
		}
		return err
	}
	for range 2 {
		fmt.Println(errors.Is(send("attacker", 20_999), txpool.ErrIntrinsicGas))
	}
	fmt.Println(send("attacker", 21_000))
	fmt.Println(send("user", 21_000))
	// Output:
	// true
	// true
	// banned: ban, try again in 1m0s
	// <nil>
}
