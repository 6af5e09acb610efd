// Package jamnps is a builder's way to a JAM network without a node of its own: JAMNP-S, the network protocol of JAM nodes over QUIC. It is a
// module of its own, because importing the rest of jamq must not move a host's version of quic-go.
//
//	client, err := jamnps.Open(jamnps.DefaultConfig(key, genesis, codec, peers))
//	defer client.Close()
//	feed, err := jamnps.OpenFeed(ctx, client, jamnps.FeedConfig{})
//	runner, err := submit.NewRunner(submit.DefaultConfig(spec), feed.Root(), builder, submitter)
//	err = runner.Start(ctx)
//	err = feed.Follow(ctx, runner)      // blocks until ctx ends
//
// where the builder calls [Feed.Context] for a refine context, and the submitter [Client.SubmitPackage] or [Client.SubmitBundle] with the attempt, by
// which each goes to another guarantor.
//
// # Connections
//
// A [Client] has one UDP socket and connects to a peer when it is needed first, again after it broke. Both sides present a certificate of their Ed25519 key
// with the name that follows from it (certificate.go); the peer's key must be the one that it is known by. Each request has a stream of its own that
// begins with a byte for its kind, and a deadline; messages are framed and bounded. The end of the peer's half is success, its reset a refusal.
//
//	UP 0     announcements   announce.go
//	CE 128   blocks          request.go
//	CE 129   state           request.go
//	CE 133   work package    submit.go
//	CE 146   bundle          submit.go
//
// # The feed
//
// [Feed] follows announcements and fetches every block between those that it has and those that are announced, from any peer that gives them. A block is
// taken only if its header hashes to the name by which it was asked for and commits to its extrinsic, so no peer can put anything into one. The best chain is
// the longest one that is announced; which chain is called best moves no decision of a queue that another chain could contradict. So a chain that is invented, and
// longer, delays packages for as long as somebody keeps it longer, since what is anchored on it can be reported on no other; it cannot make one run twice.
//
// What a peer says of the state (CE 129) is proved by the nodes that come with it, against the state root that a header of the best chain carries: see [State.Verify].
// So a refine context rests on headers alone. A peer that announces what nobody has, or answers slowly or not at all, is listened to less
// and less often.
//
// # What is trusted
//
// Seals are not verified, and finality is what peers say: FeedConfig.FinalPeers of those that are followed, by default more than half. That many peers that lie
// together can make a queue take a package for dead that is alive, and hand its transactions back, which then may run twice. Choose the peers that are followed
// as you would a node. Fewer than that many can only delay. The root of a new queue is the word of one peer: see FeedConfig.Root. (Seals are Bandersnatch signatures under keys that follow from the state of the epoch;
// who wants them verified runs a node, and asks that by submit/jip2.)
//
// # Guarantors
//
// Which validators serve a core follows from the epoch's entropy. A host that has the state knows them and says so by Config.Guarantors; otherwise validators are
// tried in turn. A guarantor ignores a package that it has seen, and may drop one silently: each attempt goes to another.
package jamnps
