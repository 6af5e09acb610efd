package jip2_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/jip2"
)

// printer is a submit.ChainSink; a builder.Builder is the usual one.
type printer struct{ stop context.CancelFunc }

func (p printer) Import(_ context.Context, b jamq.Block, _ jamq.HeaderHash) error {
	fmt.Println("block of slot", b.Slot)
	return nil
}

func (p printer) Finalize(context.Context, jamq.HeaderHash) error {
	fmt.Println("finality")
	p.stop()
	return nil
}

// The feed delivers every block of the chain, including those before Follow was
// called.
func ExampleOpenFeed() {
	server, err := jip2server.New(jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 7)))
	if err != nil {
		fmt.Println(err)
		return
	}
	web := httptest.NewServer(server)
	defer web.Close()
	defer server.Cut()
	client, err := jip2.Open(jip2.DefaultConfig(strings.Replace(web.URL, "http", "ws", 1)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	feed, err := jip2.OpenFeed(ctx, client, jip2.FeedConfig{Service: jip2.Service{
		ID:    9,
		Key:   service.MarkKey, // key of the service's mark
		Taken: func(_ jamq.PackageHash, value []byte) (bool, error) { return value != nil, nil },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 4 {
		if _, err := server.Step(); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(feed.Follow(ctx, printer{stop}))
	// Output:
	// block of slot 1
	// block of slot 2
	// block of slot 3
	// block of slot 4
	// finality
	// context canceled
}
