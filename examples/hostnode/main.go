// Hostnode shows how a JAM node with its own types embeds jamq. host/ is the
// node, adapters.go connects it to jamq, and this file starts both.
//
//	go run ./examples/hostnode
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/examples/hostnode/host"
	"github.com/jamq/jamq/submit"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	node, err := host.New(100 * time.Millisecond)
	if err != nil {
		return err
	}
	spec := jamq.Tiny() // the constants of the node's chain
	spec.SlotDuration = node.SlotDuration()
	cfg := submit.DefaultConfig(spec)
	say := log.New(out, "", 0)
	cfg.Observe = func(o submit.Observation) { say.Print(o.Effect) }
	runner, err := submit.NewRunner(cfg, block(node.FinalizedHead()), workshop{node}, workshop{node})
	if err != nil {
		return err
	}
	if err := runner.Start(ctx); err != nil {
		return err
	}
	defer runner.Stop()
	following, stop := context.WithCancel(ctx)
	followed := make(chan error, 1)
	go func() { followed <- (feed{node}).Follow(following, runner) }()
	defer func() { stop(); <-followed }()

	for number := uint64(1); number <= 6; number++ {
		bundle := host.WorkBundle{ServiceID: 7, Payload: fmt.Appendf(nil, "rollup block %d", number)}
		if err := runner.Enqueue(ctx, bundlequeue.Enqueue[host.WorkBundle]{Number: number, Bundle: bundle}); err != nil {
			return err
		}
	}
	return runner.Drain(ctx)
}
