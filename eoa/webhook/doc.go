// Package webhook posts the events of package eoa to HTTP endpoints, for example
// whenever [eoa.Config.Observe] reports something:
//
//	sender, err := webhook.New(webhook.Config{Endpoints: endpoints, DeadLetter: keep})
//	err = sender.Deliver(ctx, store, account)
//
// Each endpoint has its own place in the account's events, so that a receiver
// which is slow or fails holds up no other. [Sender.Handle], for
// [eoa.Fleet.Deliver], posts one event to all endpoints and waits for the slowest.
//
// Each event is posted as JSON to each of its endpoints. The header
// X-Jamq-Signature is "sha256=" followed by the HMAC-SHA256 of the body under
// the endpoint's secret, in hex; endpoints check it with [Verify]. Any status
// from 200 to 299 acknowledges the event. After any other outcome the post is
// retried, and after the last try the event goes to Config.DeadLetter. An event
// may be posted more than once: its account and seq identify it.
package webhook
