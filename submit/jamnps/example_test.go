package jamnps_test

import (
	"crypto/ed25519"
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jamnps"
)

// Open opens a socket. The client connects to a peer when a request needs it.
func ExampleOpen() {
	c, err := codec.New(codec.V072, jamq.Tiny())
	if err != nil {
		fmt.Println(err)
		return
	}
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	peers := []jamnps.Peer{{Key: key.Public().(ed25519.PublicKey), Addr: "127.0.0.1:40000"}}
	cfg := jamnps.DefaultConfig(key, jamq.HeaderHash{1}, c, peers)
	cfg.Listen = "127.0.0.1:0"
	client, err := jamnps.Open(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	// err = client.SubmitPackage(ctx, jamnps.Submission{Core: 0, Attempt: 1, Package: encoded})
	fmt.Println("ready")
	// Output: ready
}
