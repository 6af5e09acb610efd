// go test ./internal/tidy -update writes this file from eoa/internal/account/view.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Loaded is the persisted state of an account, as returned by [Store.Load].
//
//	type Loaded struct {
//		// Head is the account's head.
//		Head Head
//		// Open are the records for which [Record.Open] holds, by nonce.
//		Open []Record
//		// MayLose means that the store may lose writes that it has acknowledged, for
//		// example because a replica is promoted. The account is then exclusive; see
//		// [Config.Exclusive].
//		MayLose bool
//	}
type Loaded = account.Loaded
