// Command bench measures packages beside their peers: txpool beside the mempools that builders embed today, which are go-ethereum's
// legacypool and cosmos-sdk's PriorityNonceMempool; statedb beside go-ethereum's binary trie. All get the same transactions, or the same writes, and
// trees must come to the same root. Contenders take turns, so that what the machine does besides hits them alike.
//
//	GOWORK=off go -C internal/bench run .                  # both tables, ten minutes, 10 GB of memory
//	GOWORK=off go -C internal/bench run . -only statedb    # one of them
//	GOWORK=off go -C internal/bench run . -quick           # small and rough, half a minute
//
// It is a module of its own, so that who imports jamq does not download its peers, and not part of the workspace, because a peer
// wants a newer Go.
package main
