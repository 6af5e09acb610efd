package riverjobs_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/ethchain"
	"github.com/jamq/jamq/eoa/jobs/riverjobs"
	"github.com/jamq/jamq/eoa/redisstore"
)

// One of any number of equal processes: it takes a request and works until it is interrupted.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := relay(ctx); err != nil {
		fmt.Println(err)
	}
}

func relay(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, "postgres://localhost/jamq")
	if err != nil {
		return err
	}
	defer pool.Close()
	cfg := riverjobs.DefaultConfig()
	if err := riverjobs.Migrate(ctx, pool, cfg.Schema); err != nil {
		return err
	}
	store, err := redisstore.New(redis.NewClient(&redis.Options{Addr: "localhost:6379"}), "jamq", redisstore.Options{})
	if err != nil {
		return err
	}
	const chainID = 1337
	key, err := crypto.LoadECDSA("relayer.key")
	if err != nil {
		return err
	}
	node, err := rpc.DialContext(ctx, "http://localhost:8545")
	if err != nil {
		return err
	}
	chain, err := ethchain.New(node, ethchain.Options{ChainID: chainID})
	if err != nil {
		return err
	}
	open := func(eoa.Account) (eoa.Chain, eoa.Signer, error) { return chain, eoa.NewKeySigner(chainID, key), nil }
	engine, err := riverjobs.New(cfg, pool, store, open)
	if err != nil {
		return err
	}
	account := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	if _, err := engine.Submit(ctx, account, eoa.Request{Key: "invoice 17", To: &common.Address{1}, Value: uint256.NewInt(1e9)}); err != nil {
		return err // it may be submitted again, here or elsewhere
	}
	return engine.Run(ctx)
}
