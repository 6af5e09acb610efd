package jobs_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/eoatest"
	"github.com/jamq/jamq/eoa/jobs"
	"github.com/jamq/jamq/eoa/memstore"
)

// An engine runs the job of an account until it is suspended; here the engine is one call.
func Example() {
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("a relayer")))
	if err != nil {
		fmt.Println(err)
		return
	}
	account := eoa.Account{ChainID: chainID, Address: crypto.PubkeyToAddress(key.PublicKey)}
	chain, store := eoatest.New(chainID, 1, 1), memstore.New()
	runner, err := jobs.New(jobs.DefaultConfig(), store, func(eoa.Account) (eoa.Chain, eoa.Signer, error) {
		return chain, eoa.NewKeySigner(chainID, key), nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	_, err = store.Submit(ctx, account, time.Now(), eoa.Request{Key: "invoice 17", To: &common.Address{1}, Gas: 21_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = runner.Run(ctx, jobs.Step{Account: account}, func(ctx context.Context, next time.Time, unchanged func(context.Context) error) error {
		fmt.Println("sent:", chain.Pooled(), "due again:", !next.IsZero())
		return unchanged(ctx)
	})
	fmt.Println(err)
	// Output:
	// sent: 1 due again: true
	// <nil>
}
