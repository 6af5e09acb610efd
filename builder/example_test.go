package builder_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/journal"
	jamqsubmit "github.com/jamq/jamq/submit"
)

// pushing is the network of a JAM node that passes each block that it has imported to the builder.
// The simulated chain stands for the node, which also implements Root, Pack and Send.
type pushing struct {
	*simnet.Network
	follows chan struct{}
}

// Follow implements builder.Network. From now on the builder accepts blocks. A node that has
// imported blocks after recovered.Finalized delivers them here first.
func (p pushing) Follow(ctx context.Context, _ jamqsubmit.Recovery, _ jamqsubmit.ChainSink) error {
	close(p.follows)
	<-ctx.Done()
	return ctx.Err()
}

// A JAM node pushes its blocks into the builder, instead of a Network.Follow that pulls them.
func ExampleBuilder_Import() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	chain, err := simnet.Tiny(50*time.Millisecond, 7, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	network := pushing{chain, make(chan struct{})}
	var rollup builder.Rollup[words.Body] = new(words.Rollup) // yours
	b, err := builder.Open(ctx, builder.DefaultConfig(chain.Spec()), new(journal.Memory), rollup, network)
	if err != nil {
		fmt.Println(err)
		return
	}
	go b.Run(ctx)
	<-network.follows

	// The node calls this function when it has imported blocks.
	imported := func(u jamtest.Update) {
		for _, block := range u.Imported {
			if err := b.Import(ctx, block, u.Best); err != nil {
				return // the builder has stopped, and Run returns the reason
			}
		}
		_ = b.Finalize(ctx, u.Finalized)
	}
	go chain.Run(ctx, imported)

	fmt.Println("accepted:", b.Submit(ctx, []byte("hello")))
	fmt.Println("final:", b.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number == 1 }))
	// Output:
	// accepted: <nil>
	// final: <nil>
}
