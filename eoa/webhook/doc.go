// Package webhook posts the events of package eoa to HTTP endpoints as they arrive:
//
//	sender, err := webhook.New(webhook.Config{Endpoints: endpoints, DeadLetter: keep})
//	err = fleet.Deliver(ctx, sender.Handle) // or client.Deliver
//
// Each event is posted as JSON to each of its endpoints. The header
// X-Jamq-Signature is "sha256=" followed by the HMAC-SHA256 of the body under the
// endpoint's secret, in hex; endpoints check it with [Verify]. Any status from 200
// to 299 acknowledges the event. After any other outcome, the event is posted
// again, and after the last try it is passed to Config.DeadLetter. An event may be
// posted more than once; its account and seq identify the repetition.
package webhook
