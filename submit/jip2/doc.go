// Package jip2 is a rollup's way to a JAM network through a node's RPC: JIP-2, JSON-RPC 2.0 over WebSocket.
//
//	client, err := jip2.Open(jip2.DefaultConfig("ws://127.0.0.1:19800"))
//	defer client.Close()
//	feed, err := jip2.OpenFeed(ctx, client, jip2.FeedConfig{Service: service})
//	runner, err := submit.NewRunner(submit.DefaultConfig(feed.Spec()), feed.Root(), builder, submitter)
//	err = runner.Start(ctx)
//	err = feed.Follow(ctx, runner)          // blocks until ctx ends
//
// where the builder calls [Feed.Context] for a refine context and the submitter [Feed.Submit].
//
// # The client
//
// [Client] keeps one connection, and makes it again with back-off and jitter when it breaks. Calls wait for a connection and have deadlines;
// messages are bounded. A [Subscription] outlives connections. It holds the newest value only, because a node, too, leaves updates out.
// Everything of JIP-2 that has no method here can be asked for by [Client.Call] and [Subscribe].
//
// # The feed
//
// JIP-2 shows no blocks. But a queue needs of a block only what it does with the rollup's own packages, and that follows from what JIP-2 does show: the
// status of a package after each block, and the value that the rollup's service has stored. [Feed] walks every chain from head to head by parent(),
// leaving no block out, asks after each block about each package that may be out, and delivers blocks that speak of these packages alone. The
// queue then judges by the same rules D1 to D6, and the same safety theorem holds, as if it read whole blocks:
//
//	D1–D4   unreported: no block on the way was shown to report it; heights are counted, not guessed
//	D5      reported, and the node says Failed
//	D6      available for an epoch, and the service's value still does not show it
//
// evidence.go is this derivation. Where a node is silent, it is presumed that the package lives: a status that is stuck at Reported beyond the
// availability time-out counts as available, so that only the service's value decides; a head whose state the node does not have is not delivered.
// That delays a new version, and never makes one too early. If a node has pruned the states of older blocks, what it says of the next one that it has
// tells about them.
//
// The service must leave a mark of every package that it takes: see [Service]. A node without workPackageStatus cannot feed a queue with chain evidence:
// OpenFeed says so. Bundles are sent where the node takes them, and packages with their extrinsics otherwise.
//
// # Errors
//
// Submissions return errors with a class (submit.ClassOf): what failed on the way is retryable, what the node itself refuses asks for another
// guarantor, and a method or core that does not exist is fatal. Many nodes that are validators refuse all submissions; use one that is not.
package jip2
