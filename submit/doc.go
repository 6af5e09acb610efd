// Package submit has the ways from a builder to a JAM network.
//
// A way to a network does three things: it delivers the JAM chain, it makes work
// packages, and it sends them to guarantors. Two packages implement it for real
// networks:
//
//   - submit/jip2 uses the RPC of a JAM node (JIP-2); builder/jip2net makes a
//     builder.Network of it
//   - submit/jamnps speaks the network protocol of JAM (JAMNP-S) itself;
//     submit/jamnps/jamnpsnet makes a builder.Network of it
//
// Package submit/codec encodes packages and decodes blocks.
//
// This package itself holds what they have in common. A [ChainFeed] delivers blocks
// and finality to a [ChainSink]; a builder.Builder is one. An error of a send has a
// [Class], which decides whether the same bytes are sent again. [Recovery] is the
// place at which a feed continues after a restart.
package submit
