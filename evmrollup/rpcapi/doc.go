// Package rpcapi serves Ethereum's JSON-RPC for an EVM rollup. It uses
// go-ethereum's server, JSON shapes and error codes, so that ethers, viem, Hardhat
// and MetaMask work with the node as they work with geth.
//
//	handler, stop, err := rpcapi.Handler(node, rpcapi.DefaultConfig())
//
// Handler serves HTTP and WebSocket on one address. [Config].APIs adds or replaces
// methods, and [Config].Page serves browsers.
//
// The files are named after the methods. The methods of a namespace are in the
// files that begin with its name: eth_getBalance is in eth_state.go,
// debug_traceTransaction in debug.go, trace_block in trace.go and jam_getBundle in
// jam.go. The methods of developer mode (evm, hardhat, anvil, personal) are in
// dev_evm.go and dev_wallet.go. go-ethereum's server finds the exported methods of
// the receivers by reflection.
//
// # Blocks
//
// A block tag or number means the same block in every call, because all calls use
// Node.Resolve. The tag latest means the newest block that is accumulated on the
// best JAM chain together with all blocks before it. The blocks up to latest, and
// the transactions in them, count as mined. The tag pending means the newest
// executed block, which is sealed but may not be accumulated yet.
//
// A reorganization of JAM can move latest back. Log subscriptions and log filters
// then deliver the affected logs again with removed set, oldest first, as geth
// does. When blocks become latest again, they are delivered as new heads and new
// logs. Usually they are the same blocks with the same hashes. Finalized blocks
// never change.
//
// # Differences from geth
//
// Tests send the same calls to this node and to geth after the same transactions,
// and compare all values. They write the differences and their reasons to
// docs/refnode.md.
//
// # Access and limits
//
// Every client may call the namespaces in [Config].API. A client with a token
// (HS256, as in geth's engine API) may call all namespaces including admin, without
// limits. Package ratelimit limits all other clients by their address and by their
// connection. All bytes count, and so do calls that cost more than a lookup.
//
// A client that exceeds its byte rate gets HTTP status 429; a WebSocket is read
// more slowly instead. A call above the rate returns error code -32005. While the
// pool is nearly full, a random part of the sent transactions is refused with the
// same code. A client is banned for a while if it sends transactions that no honest
// client sends, or if it repeatedly sends underpriced transactions. Programs on the
// same machine are not limited unless [Config].LimitLoopback is set.
package rpcapi
