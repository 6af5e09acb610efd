package jamnps_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jamnps"
)

func ExampleAlternativeName() {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	fmt.Println(jamnps.AlternativeName(key))
	// Output: e3r2oc62zwfj3crnuifuvsxvbtlzetk4o5qyhetkhagsc2fgl2oka <nil>
}

func ExampleALPN() {
	genesis := [32]byte{0xde, 0xad, 0xbe, 0xef}
	fmt.Println(jamnps.ALPN(genesis, true))
	// Output: jamnp-s/0/deadbeef/builder
}

func ExampleWriteMessage() {
	var stream bytes.Buffer
	fmt.Println(jamnps.WriteMessage(&stream, []byte("hi")), stream.Bytes())
	message, err := jamnps.ReadMessage(&stream, 100)
	fmt.Printf("%s %v\n", message, err)
	// Output:
	// <nil> [2 0 0 0 104 105]
	// hi <nil>
}

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
