package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/webhook"
)

// An endpoint trusts a body only by its signature.
func Example() {
	secret := []byte("at least sixteen bytes")
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Println("signed:", webhook.Verify(secret, body, r.Header.Get(webhook.Header)), err)
	}))
	defer endpoint.Close()
	sender, err := webhook.New(webhook.Config{
		Endpoints: func(eoa.Event) []webhook.Endpoint { return []webhook.Endpoint{{URL: endpoint.URL, Secret: secret}} },
		DeadLetter: func(_ context.Context, url string, e eoa.Event, reason error) error {
			return fmt.Errorf("%s did not take event %d: %w", url, e.Seq, reason)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sender.Handle(context.Background(), eoa.Event{Seq: 1, Key: "invoice 17", Kind: eoa.EventFinal}))
	fmt.Println("forged:", webhook.Verify(secret, []byte("{}"), webhook.Sign([]byte("somebody else's secret"), []byte("{}"))))
	// Output:
	// signed: true <nil>
	// <nil>
	// forged: false
}
