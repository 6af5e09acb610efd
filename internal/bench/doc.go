// Command bench measures txpool beside the mempools that builders embed today: go-ethereum's legacypool and cosmos-sdk's
// PriorityNonceMempool. All of them get the same transactions, whose hashes, sizes and senders are known before, in one process and in
// turns, so that what the machine does besides hits them alike.
//
//	GOWORK=off go -C internal/bench run .          # the table, a few minutes
//	GOWORK=off go -C internal/bench run . -quick   # small and rough, half a minute
//
// It is a module of its own, so that who imports jamq does not download its peers, and not part of the workspace, because a peer
// wants a newer Go.
package main
