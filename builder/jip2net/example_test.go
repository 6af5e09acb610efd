package jip2net_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/jip2net"
	"github.com/jamq/jamq/canonical"
	"github.com/jamq/jamq/internal/words"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/journal"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jip2"
)

// A builder on the RPC of a JAM node. The rollup's service is that of package service, which stores
// a mark for each package that it accepts, and accepts packages that the builder has signed.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	url, stop := simulatedNode()
	defer stop()

	const (
		refineGas     = 1_000_000_000
		accumulateGas = 1_000_000
	)
	code, err := service.Blob(codec.V072)
	if err != nil {
		fmt.Println(err)
		return
	}
	// A program reads the key from a file, or signs with a device.
	signer, err := service.NewSigner(codec.V072, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		fmt.Println(err)
		return
	}
	network, err := jip2net.Open(ctx, jip2net.Config{
		Node: jip2.DefaultConfig(url),
		Service: jip2.Service{
			ID:    rollup,
			Key:   service.MarkKey,
			Taken: func(_ jamq.PackageHash, value []byte) (bool, error) { return value != nil, nil },
		},
		Version: codec.V072,
		Package: codec.OneItem(rollup, blake2b.Sum256(code), common.Hash{}, refineGas, accumulateGas),
		Sign:    signer.Sign,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer network.Close()

	var yours builder.Rollup[words.Body] = new(words.Rollup)
	b, err := builder.Open(ctx, builder.DefaultConfig(network.Spec()), new(journal.Memory), yours, network)
	if err != nil {
		fmt.Println(err)
		return
	}
	ran := make(chan error, 1)
	go func() { ran <- b.Run(ctx) }()
	fmt.Println("accepted:", b.Submit(ctx, []byte("hello")))
	fmt.Println("final:", b.Await(ctx, func(h canonical.Heads) bool { return h.Finalized.Number == 1 }))
	cancel()
	fmt.Println(<-ran)
	// Output:
	// accepted: <nil>
	// final: <nil>
	// context canceled
}

// simulatedNode starts a simulated JAM node with short slots, and returns the URL of its RPC.
func simulatedNode() (url string, stop func()) {
	chain := jamtest.DefaultConfig(jamq.Tiny(), 1)
	chain.Spec.SlotDuration = 50 * time.Millisecond
	chain.StartSlot = jamq.NewSlotClock(chain.Spec).SlotAt(time.Now())
	chain.Genesis = words.Genesis(rollup)
	server, err := jip2server.New(jip2server.DefaultConfig(chain))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- server.Run(ctx) }()
	web := httptest.NewServer(server)
	return strings.Replace(web.URL, "http", "ws", 1), func() {
		cancel()
		<-ran
		server.Cut()
		web.Close()
	}
}
