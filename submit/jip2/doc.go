// Package jip2 connects a rollup to a JAM network through the RPC of a node.
// The protocol is JIP-2: JSON-RPC 2.0 over WebSocket.
//
//	client, err := jip2.Open(jip2.DefaultConfig("ws://127.0.0.1:19800"))
//	defer client.Close()
//	feed, err := jip2.OpenFeed(ctx, client, jip2.FeedConfig{Service: service})
//	err = feed.Follow(ctx, sink)                      // delivers blocks until ctx ends
//	refine, err := feed.Context(ctx, anchor, needs)   // for a package
//	err = feed.Submit(ctx, jip2.Submission{…})        // sends it
//
// Most hosts use package builder/jip2net, which makes a builder.Network of a client
// and a feed.
//
// # The client
//
// A [Client] keeps one connection to a node. If it breaks, the client connects
// again with back-off and jitter. Every call waits for a connection and has a
// deadline, and the size of messages is bounded. A [Subscription] outlives
// connections. It holds the newest value only. [Client.Call] and [Subscribe]
// reach the methods of JIP-2 that this package does not wrap.
//
// # The feed
//
// JIP-2 does not serve blocks. A queue, however, needs from a block only its
// effect on the rollup's own packages, and JIP-2 shows that: it returns the
// status of a package after each block, and the value that the rollup's service
// has stored. [Feed] walks the chain from head to head with the method
// "parent", without leaving out a block. After each block it requests the
// status of each package that may have been sent, and it delivers blocks that
// contain these packages only. The queue then applies the rules D1 to D6
// (reasons why a package is dead) as it would to whole blocks:
//
//	D1–D4   unreported: no block up to here reports it; heights are counted
//	D5      reported, and the node's status is Failed
//	D6      available for an epoch, and the service's value does not show it
//
// If a node gives no answer, or contradicts itself, the feed presumes that the
// package is alive. A status that stays Reported beyond the availability
// time-out counts as available, so that only the service's value decides. A
// head is not delivered if the node does not have its state. This can delay a
// new version of a package, but it never allows one too early. If the node has
// pruned the state of an older block, the feed derives the status there from
// the next block whose state the node has.
//
// JIP-2 serves no headers, so the feed asks for each block twice at once and accepts
// only equal answers. If the node contradicts the delivered blocks, Follow ends
// after FeedConfig.LostAfter slots: see ErrHistoryLost.
//
// Behind a slow proxy the chain can grow faster than one parent is fetched after
// the other. While Follow runs, the feed therefore requests the parents of each
// head that the node names as soon as the node names it. A gap between the
// delivered blocks and the first of these heads is still walked block by block,
// because JIP-2 has no method for several blocks. submit.FeedHealth shows how far
// the feed is behind.
//
// The service must store a mark for every package that it accumulates: see
// [Service]. OpenFeed returns ErrUnsupported if the node lacks the method
// workPackageStatus, or answers without knowing the status of packages.
// Feed.Submit sends a bundle if the node accepts bundles, and otherwise the
// package with its extrinsics. A head whose slot lies far ahead of the host's
// clock is not followed.
//
// # Deviations of nodes
//
// The client tolerates envelopes that some nodes send instead of JIP-2's:
// several messages in a JSON array, notifications whose params are an array or
// name the subscription subscriptionId, ids that are a number once and a string
// another time, errors of any shape, and requests of the node, which it refuses.
// A node that answers a code other than 1 for a pruned state is treated as if it
// had answered 1.
//
// # Errors
//
// The errors of submissions have a class (submit.ClassOf). A failure between
// the client and the node is Retryable. A refusal by the node is
// OtherGuarantor. A missing method or an unknown core is Fatal. Many validators
// refuse all submissions over RPC; use a node that accepts them.
package jip2
