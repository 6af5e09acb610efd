// Hostnode shows how a JAM node with its own types embeds jamq. host/ is the node,
// which imports blocks itself, adapters.go connects it to jamq, rollup.go is a rollup,
// and this file starts all of them.
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
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/examples/hostnode/host"
	"github.com/jamq/jamq/journal"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// service is the id of the rollup's service.
const service = 7

func run(ctx context.Context, out io.Writer) error {
	node, err := host.New(100 * time.Millisecond)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	nodeRan := make(chan error, 1)
	go func() { nodeRan <- node.Run(running) }()
	defer func() { stop(); <-nodeRan }()
	return build(ctx, node, out)
}

// build runs a builder on a node until six blocks are final.
func build(ctx context.Context, node *host.Node, out io.Writer) error {
	spec := jamq.Tiny() // the constants of the node's chain
	spec.SlotDuration = node.SlotDuration()
	cfg := builder.DefaultConfig(spec)
	say := log.New(out, "", 0)
	b, err := builder.Open(ctx, cfg, new(journal.Memory), builder.Rollup[[]byte](new(counter)), network{node})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- b.Run(running) }()
	defer func() { stop(); <-ran }()
	shown := make(chan error, 1)
	go func() {
		shown <- b.Watch(running, 0, func(events []builder.Event, _ canonical.Heads) error {
			for _, e := range events {
				say.Print(e.Effect)
			}
			return nil
		})
	}()
	defer func() { stop(); <-shown }()

	const blocks = 6
	for i := range blocks {
		if err := b.Submit(ctx, fmt.Appendf(nil, "operation %d", i+1)); err != nil {
			return err
		}
	}
	return b.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number == blocks })
}
