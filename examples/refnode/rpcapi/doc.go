// Package rpcapi answers Ethereum's JSON-RPC for the reference node, with go-ethereum's server, shapes and error codes, so that ethers, viem,
// Hardhat and MetaMask work with it as they do with geth.
//
//	handler, stop, err := rpcapi.Handler(node, rpcapi.DefaultConfig())
//
// serves it over HTTP and WebSocket on one address, with a page for browsers. Each namespace is a handful of small receivers; go-ethereum's
// server finds their exported methods by reflection, so eth_getBalance is State.GetBalance.
//
//	chain.go, state.go, transactions.go, logs.go, fees.go   what eth reads and sends
//	calls.go          eth_call, eth_estimateGas, eth_createAccessList, and overrides of the state they run on
//	filters.go        filters; subscribe.go: eth_subscribe
//	debug.go          traces, by go-ethereum's own tracers
//	jam.go, status.go   where blocks and transactions stand; a transaction that was dropped has its reason
//	proof.go, witness.go   what can be proved
//	admin.go          what changes the node
//	server.go         who comes in by which door; limits.go: and how much; secret.go: the key of tokens
//
// # Blocks
//
// Block tags and numbers mean the same block in every call: all go through Node.Resolve. A block, and a transaction in it, counts as mined when
// it is latest: accumulated on the best JAM chain, with all blocks before it. pending names the newest executed block, which is sealed and only
// not accumulated yet.
//
// JAM can reorganize, and take back what was latest. Subscribers to logs and filters for logs then get the logs again, with removed set, oldest
// first, as geth does it; what is latest afterwards comes as new heads and new logs, and mostly it is the very same blocks with the very same
// hashes. What is finalized is never taken back.
//
// # What is not there
//
// The node signs for nobody: eth_accounts is empty, and there is no eth_sendTransaction and no eth_sign. eth_getProof is refused, because the
// state is a unified binary tree (EIP-7864): jam_getStateWitness proves the same values. Overrides of a whole storage ("state"), of precompiled
// contracts and of the block are refused, and there is no eth_simulateV1. There are no blobs.
//
// # Who may do what
//
// Everybody may call the namespaces of Config.API. Who brings a token (HS256, as of geth's engine API) may call all, and admin, without limits.
// Others are limited by their address, with txpool's limiter: what they send is counted in bytes at the door, and calls that cost more than a
// look are counted as they come. Over HTTP too many bytes are refused with status 429; a WebSocket is read more slowly; a call too many gets the
// code -32005, everywhere. Who sends transactions that no honest client sends is banned for a while. Programs on the same machine are not
// limited unless Config says so.
package rpcapi
