// Package ratelimit limits how much each source may send, and bans sources that
// send transactions which no honest client sends. A host asks it before it
// passes a transaction to its pool:
//
//	limiter, err := ratelimit.New(ratelimit.DefaultConfig())
//
//	err = limiter.Allow(ratelimit.Call{Source: ip, Method: method, Txs: 1, Bytes: len(raw)})
package ratelimit
