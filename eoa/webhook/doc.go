// Package webhook tells HTTP endpoints of the events of package eoa. Give [Sender.Handle] to [eoa.Deliver]:
//
//	sender, err := webhook.New(webhook.Config{Endpoints: endpoints, DeadLetter: keep})
//	_, err = eoa.Deliver(ctx, store, account, 100, sender.Handle)
//
// Each event is posted as JSON to each of its endpoints, with the header X-Jamq-Signature: "sha256=" and the HMAC-SHA256 of the body under the endpoint's
// secret, in hex. Any status from 200 to 299 takes it. All else is tried again, and after the last try it goes to the dead letters. An event may come more
// than once: its account and seq tell.
package webhook
