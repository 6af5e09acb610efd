package submit_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// ExampleNewRunner starts a runner and hands it a bundle; host is a Builder and a Submitter.
func ExampleNewRunner() {
	genesis := jamq.Block{Hash: jamq.HeaderHash{1}}
	cfg := submit.DefaultConfig(jamq.Tiny())
	runner, err := submit.NewRunner(cfg, genesis, &host{}, &host{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := runner.Start(ctx); err != nil {
		panic(err)
	}
	defer runner.Stop()
	if err := runner.Enqueue(ctx, bundlequeue.Enqueue[string]{Number: 1, Bundle: "block 1"}); err != nil {
		panic(err)
	}
	stats, err := runner.Stats(ctx)
	fmt.Println("next block:", stats.Next, err)
	// Output: next block: 2 <nil>
}
