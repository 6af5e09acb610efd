package drive_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/internal/drive"
	"github.com/jamq/jamq/submit"
	"github.com/jamq/jamq/submit/journal"
)

// ExampleOpenRunner keeps a runner's queue in a journal. A bundle that was enqueued in one runner
// is in the queue of the next one.
func ExampleOpenRunner() {
	genesis := jamq.Block{Hash: jamq.HeaderHash{1}}
	// A real host uses journal.Open or pebblejournal.Open.
	durability := drive.Durability{Journal: new(journal.Memory)}
	cfg := submit.DefaultConfig(jamq.Tiny())
	cfg.Observe = func(o submit.Observation) {
		if failed, ok := o.Effect.(bundlequeue.Failed); ok {
			fmt.Println("back into the pool:", decodeWords(failed.Bundle).Words)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for number := uint64(1); number <= 2; number++ {
		runner, err := drive.OpenRunner(cfg, genesis, durability, idle{}, idle{})
		if err != nil {
			panic(err)
		}
		fmt.Println("found a queue:", runner.Recovered().Found)
		if err := runner.Start(ctx); err != nil {
			panic(err)
		}
		err = runner.Enqueue(ctx, bundlequeue.Enqueue{Number: number, Bundle: mustEncode(words{Words: []string{"a transaction"}})})
		infos, _ := runner.Infos(ctx)
		fmt.Println("bundles:", len(infos), err)
		runner.Stop()
	}
	// Output:
	// found a queue: false
	// bundles: 1 <nil>
	// found a queue: true
	// bundles: 2 <nil>
}

// idle is a Builder and a Submitter that does nothing.
type idle struct{}

func (idle) Build(context.Context, bundlequeue.Build) (drive.Package, error) {
	return drive.Package{}, errors.New("not now")
}

func (idle) Submit(context.Context, bundlequeue.Send) error { return errors.New("not now") }

// ExampleNewRunner starts a runner and hands it a bundle; host is a Builder and a Submitter.
func ExampleNewRunner() {
	genesis := jamq.Block{Hash: jamq.HeaderHash{1}}
	cfg := submit.DefaultConfig(jamq.Tiny())
	runner, err := drive.NewRunner(cfg, genesis, &host{}, &host{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := runner.Start(ctx); err != nil {
		panic(err)
	}
	defer runner.Stop()
	if err := runner.Enqueue(ctx, bundlequeue.Enqueue{Number: 1, Bundle: []byte("block 1")}); err != nil {
		panic(err)
	}
	stats, err := runner.Stats(ctx)
	fmt.Println("next block:", stats.Next, err)
	// Output: next block: 2 <nil>
}
