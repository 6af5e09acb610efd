// go test ./internal/tidy -update writes this file from eoa/internal/account/batch.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Batch is one step of an account. A store writes all of it or nothing.
//
//	type Batch struct {
//		// Head is the new head. Its Version is the version that the step was
//		// decided on; the store writes Version+1.
//		Head Head
//		// Records replace the stored records with the same ids. The key and the
//		// priority of a record never change, a record that is Broadcast, Mined or
//		// Confirmed was Prepared in an earlier step, and a new attempt has a zero SentAt.
//		Records []Record
//		// Events are appended to the outbox. The store numbers them.
//		Events []Event
//		// Done are the Seqs of the orders that were carried out.
//		Done []uint64
//		// Drop are records of ended requests whose history is deleted. The store
//		// keeps their keys, ids, states and digests: Get and Submit return a record
//		// with these only, and List and ByHash no longer find it.
//		Drop []Record
//		// Add are new requests of the executor, accepted as by Submit. A request
//		// whose key exists is skipped.
//		Add []Request
//	}
type Batch = account.Batch
