// Package submit has the ways from a builder to a JAM network.
//
// A way to a network does three things: it delivers the JAM chain, it makes work
// packages, and it sends them to guarantors. Two packages implement it for real
// networks:
//
//   - submit/jip2 uses the RPC of a JAM node (JIP-2); builder/jip2net turns it into
//     a builder.Network
//   - submit/jamnps speaks the network protocol of JAM (JAMNP-S) itself;
//     submit/jamnps/jamnpsnet turns it into a builder.Network
//
// Package submit/codec encodes packages and decodes blocks.
//
// This package itself contains the common parts. A [ChainFeed] delivers blocks and
// finality to a [ChainSink]; a builder.Builder is a ChainSink. An error of a send
// has a [Class], which decides whether the same bytes are sent again. [Recovery]
// tells a feed how to continue after a restart.
package submit
