// Package jamnps connects a builder to a JAM network without running a node, through JAMNP-S, the
// network protocol of JAM nodes over QUIC. It is a separate module, so that importing the rest of
// jamq does not change a host's version of quic-go.
//
//	client, err := jamnps.Open(jamnps.DefaultConfig(key, genesis, codec, peers))
//	defer client.Close()
//	feed, err := jamnps.OpenFeed(ctx, client, jamnps.FeedConfig{})
//	err = feed.Follow(ctx, sink) // delivers blocks until ctx ends; a builder is a sink
//
// For a network with a chain specification file (JIP-4), one line opens the client:
//
//	client, err := jamnps.OpenChain(file, jamnps.KeyFromSeed(seed), codec.V072)
//
// Most hosts use package jamnpsnet, which makes a builder.Network of a client and a feed. Another
// builder.Network calls [Feed.Context] for the refine context of a package. It then sends with
// [Client.SubmitPackage] or [Client.SubmitBundle] and the number of the attempt, so that each
// attempt goes to a different guarantor.
//
// # Connections
//
// A [Client] has one UDP socket. It connects to a peer when a request first needs the peer, and
// again after the connection has broken. Both sides present a certificate with their Ed25519 key
// and the name that is derived from the key (certificate.go). The peer's key must be the one in
// Config.Peers.
//
// Each request uses a separate stream, which begins with a byte for the kind of the request, and
// has a deadline. Messages are framed and bounded. The peer ends its half of the stream to report
// success, and resets the stream to refuse the request.
//
//	UP 0     announcements   announce.go
//	CE 128   blocks          request.go
//	CE 129   state           request.go
//	CE 130   justification   request.go
//	CE 133   work package    submit.go
//	CE 146   bundle          submit.go
//
// The client offers peers the protocol for builders and, for peers that lack it, the protocol for
// nodes. It tolerates known deviations: surplus blocks in an answer, several UP 0 streams, answers
// that are only partly valid, and a final block of zeros.
//
// # The feed
//
// [Feed] follows the announcements of its peers. It fetches every block between its own chain and
// the announced blocks from any peer that serves them. It accepts a block only if the header has
// the requested hash and commits to the extrinsic, so that a peer cannot alter a block. The best
// chain is the longest announced one. If that chain is invented, packages that are anchored on it
// cannot be reported on any other chain.
//
// From Gray Paper 0.8.0 on, the feed also needs peers that serve the state after its root, or the
// blocks of two epochs before: see sizes.go. Answers about the state (CE 129) come with proofs
// against a state root in a header of the best chain: see stateRange.Verify. A refine context
// therefore depends on headers only. If a peer announces blocks that are not available, or answers
// late or not at all, the feed skips its announcements for a back-off that grows with each
// failure.
//
// # Trust
//
// The feed does not verify seals, and it learns finality from its peers: a block is final if
// FeedConfig.FinalPeers of the followed peers report it, by default more than half. If that many
// peers lie together, a queue can treat a live package as dead and hand its transactions back,
// which may then run twice. FeedConfig.CheckFinal replaces this trust by a proof, if the peers
// return justifications: see Client.Justification. If FeedConfig.Root is zero, a single peer
// chooses the root of the queue. Choose the followed peers as carefully as you would choose a node.
// If you need verified seals, run a node and use submit/jip2.
//
// Fewer liars can invent blocks, which cause reorgs and delay packages. Blocks that fewer than
// FinalPeers peers have announced therefore take at most a quarter of the queue, in equal shares
// for the peers. Of several forks of the same height, only one is delivered. If a share or the
// queue is full, the feed waits for other peers or for finality. If FinalPeers is 1, there are no
// shares without CheckFinal.
//
// # Guarantors
//
// The epoch's entropy determines which validators serve a core. Once in each epoch, a feed reads
// the entropy and the validators from the verified state. The client then sends first to the
// guarantors among its peers: see assignment.go. A host that knows the state can provide the
// guarantors through Config.Guarantors instead. Each attempt goes to a different guarantor, because
// a guarantor ignores a package that it has already received, and may drop a package without an
// error.
package jamnps
