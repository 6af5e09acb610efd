// Package ratelimit limits how much each source may send. It also bans sources that
// send transactions that no honest client sends. A host calls it before it passes a
// transaction to its pool:
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
// A call passes up to four limits: those of its connection, of its source, of its
// method, and of all sources together. Each limit is a token bucket for
// transactions and a token bucket for bytes. A call that one limit refuses takes no
// tokens from any limit.
//
// A source is an identity that an attacker cannot forge, such as an IP address or
// an API key. Many users can share a source, for example behind NAT. If the limit
// per connection is lower than that of the source, a flood on one connection leaves
// the rest of the source's limit to the others. A client that opens many
// connections can still use up the source's limit.
//
// [Error].RetryAfter is the time after which the same call succeeds if no other
// call uses the limits. It contains a random share, Config.Jitter, so that clients
// that were refused together do not return together.
//
// # Surge
//
// While the host is busy, [Surge] refuses calls at random. The host reports its
// pressure, for example how full its pool is. The share of refused calls rises from
// 0 at a threshold to a maximum. A refused client receives a random RetryAfter.
// After that time, the next call of its source is not refused again by Surge. No
// source is therefore starved, and a client that retries earlier has no advantage.
//
// # Bans
//
// [Limiter.Strike] counts an offence of a source. Invalid transactions count at
// once. Honest clients send underpriced transactions now and then, so a number of
// them within a window is free. Enough strikes lead to a ban, and each further ban
// is twice as long. A ban hits all users of a shared source; [Limiter.Pardon] lifts
// it.
//
// # Memory and concurrency
//
// The limiter remembers sources, connections and bans up to a maximum number of
// each, and forgets the least recently used ones first. Each call takes constant
// time under one lock. Tests pass their own clock and random numbers in [Config].
package ratelimit
