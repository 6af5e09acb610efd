// Package jip2 connects a rollup to a JAM network through the RPC of a node. The protocol is JIP-2,
// which is JSON-RPC 2.0 over WebSocket.
//
//	client, err := jip2.Open(jip2.DefaultConfig("ws://127.0.0.1:19800"))
//	defer client.Close()
//	feed, err := jip2.OpenFeed(ctx, client, jip2.FeedConfig{Service: service})
//	err = feed.Follow(ctx, sink)                      // delivers blocks until ctx ends
//	refine, err := feed.Context(ctx, anchor, needs)   // for a package
//	err = feed.Submit(ctx, jip2.Submission{…})        // sends it
//
// Most hosts use package builder/jip2net, which makes a builder.Network of a client and a feed.
//
// # The client
//
// A [Client] keeps one connection to a node. If the connection breaks, the client connects again
// with back-off and jitter. Every call waits for a connection and has a deadline, and the size of
// messages is bounded. A [Subscription] survives lost connections, but it holds only the newest
// value. [Client.Call] and [Subscribe] reach the methods of JIP-2 that this package does not wrap.
//
// # The feed
//
// JIP-2 does not serve blocks. A queue, however, needs to know only how each block affects the
// rollup's own packages. JIP-2 shows this, because it returns the status of a package after each
// block, and the value that the rollup's service has stored. [Feed] walks the chain from head to
// head with the method "parent", without leaving out a block. After each block it requests the
// status of every package that may have been sent. The blocks that it delivers contain only these
// packages. The queue then decides whether a package is dead by the same rules, D1 to D6 in
// docs/invariants.md, as it would for whole blocks:
//
//	D1–D4   unreported for too long: no block of the chain so far reports the package
//	D5      reported, but the node's status is Failed
//	D6      available for an epoch, but the service's value does not show the package
//
// If a node gives no answer, or contradicts itself, the feed presumes that the package is alive:
//
//   - If a status stays Reported beyond the availability time-out, the feed counts the package as
//     available, so that only the service's value decides.
//   - If the node does not have the state of its head, the feed does not deliver that head.
//   - If the node has pruned the state of an older block, the feed derives the status there from
//     the next block whose state the node has.
//
// This can delay a new version of a package, but it never allows one too early.
//
// JIP-2 serves no headers with which an answer could be verified. The feed therefore asks for each
// block, and about each change of a package, until two answers agree. A gateway with several nodes
// behind it, some of which are late, is followed too, but the feed is behind it by more slots. If
// the node contradicts the delivered blocks for longer than FeedConfig.LostAfter slots, Follow
// returns an error: see ErrHistoryLost.
//
// Behind a slow proxy, the chain can grow faster than the feed can fetch one parent after the
// other. While Follow runs, the feed therefore begins to fetch the ancestors of a head as soon as
// the node names that head. The gap between the delivered blocks and the first of these heads must
// still be walked block by block, because JIP-2 has no method for several blocks. submit.FeedHealth
// shows how far the feed is behind.
//
// The service must store a mark for every package that it accumulates: see [Service]. OpenFeed
// returns ErrUnsupported if the node lacks the method workPackageStatus, or has the method but does
// not track packages. Feed.Submit sends a bundle if the node accepts bundles, and otherwise the
// package with its extrinsics. The feed does not follow a head whose slot lies far ahead of the
// host's clock.
//
// # Deviations of nodes
//
// The client tolerates these deviations from JIP-2, which some nodes have:
//
//   - several messages in one JSON array
//   - notifications whose params are an array, or name the subscription subscriptionId
//   - ids that are a number in one message and a string in another
//   - errors of any shape
//   - requests to the client, which it refuses
//   - a code other than 1 for a pruned state
//
// # Errors
//
// The errors of submissions have a class (submit.ClassOf). A failure between the client and the
// node is Retryable, a refusal by the node is OtherGuarantor, and a missing method or an unknown
// core is Fatal. Many validators refuse all submissions over RPC, so choose a node that accepts
// them.
package jip2
