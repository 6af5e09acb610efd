// Package ratelimit limits how much each source may send, and bans sources that
// send transactions which no honest client sends. A host calls it before it
// passes a transaction to its pool:
//
//	limiter, err := ratelimit.New(ratelimit.DefaultConfig())
//
//	call := ratelimit.Call{Source: ip, Connection: addr, Method: method, Txs: 1, Bytes: len(raw)}
//	if err := limiter.Allow(call); err != nil {
//		return err // an *Error with RetryAfter
//	}
//	switch _, err := pool.AddRaw(raw); {
//	case txpool.Spam(err):
//		limiter.Strike(ip, ratelimit.Invalid)
//	case txpool.Underpriced(err):
//		limiter.Strike(ip, ratelimit.Underpriced)
//	}
//
// The package needs no pool: it can guard any calls.
//
// # Limits
//
// A call passes up to four limits: that of its connection, its source, its
// method and all sources together. Each is a token bucket for transactions and
// one for bytes. A call that one of them refuses takes nothing from any.
//
// A source is an identity that an attacker cannot forge, such as an IP address
// or an API key. Many users can share a source (NAT). A limit per connection
// that is lower than that of the source leaves the rest to the others when one
// connection floods. A client that opens many connections can still use up the
// source's limit.
//
// [Error].RetryAfter is the time after which the same call succeeds if no other
// call uses the limits. It contains a random share, Config.Jitter, so that
// clients which were refused together do not return together.
//
// # Surge
//
// While the host is busy, [Surge] refuses calls at random. The host reports its
// pressure, for example the occupancy of its pool. The share of refused calls
// rises from 0 at a threshold to a maximum. A refused client receives a random
// RetryAfter, and the source's next paced call after that time is not refused
// again. No source is starved, and a client that retries earlier has no
// advantage.
//
// # Bans
//
// [Limiter.Strike] counts an offence of a source. Invalid transactions count at
// once. Underpriced ones are honest now and then, so a number of them within a
// window is free. Enough strikes are a ban, and each further ban is twice as
// long. A ban hits all users of a shared source; [Limiter.Pardon] lifts it.
//
// # Memory and concurrency
//
// Sources, connections and bans are remembered up to a maximum number each, the
// most recently used ones. Each call takes constant time under one lock. Tests
// pass their own clock and random numbers in [Config].
package ratelimit
