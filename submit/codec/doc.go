// Package codec implements the Gray Paper's encoding (appendix C) of the data
// that a builder exchanges with a JAM network: naturals, work packages, work
// reports, guarantees, headers and whole blocks. It also computes the hashes
// over them.
//
//	c, err := codec.New(codec.V072, jamq.Tiny())
//	p := codec.WorkPackage{AuthCodeHost: service, Context: context, Items: items}
//	raw, err := c.Encode(&p)
//	hash, err := c.PackageHash(&p)                       // identifies the package on the chain
//	back, err := codec.Decode[codec.WorkPackage](c, raw)
//	block, err := codec.Decode[codec.Block](c, raw)
//	imported, err := c.Imported(&block)                  // for bundlequeue
//
// A [Codec] belongs to one version of the Gray Paper and to the constants of
// one chain. It needs the constants because some sequences are encoded without
// a length: an epoch mark has one entry per validator, and an assurance has one
// bit per core. A Codec is safe for concurrent use.
//
// # Canonical encoding
//
// Decode accepts exactly the bytes that Encode produces. It rejects naturals
// that are longer than necessary, prerequisites out of order, flags other than
// 0 and 1, and bytes after the end. A decoded value therefore encodes to the
// same bytes and has the same hash. To guarantee this, each type has one
// description of its encoding, which serves both directions (coder.go).
//
// # Hostile input
//
// No input causes a panic. Memory use is bounded by the length of the input
// times a small constant, whatever lengths the input claims. A decoded value
// shares no memory with the input. The package does not check whether a block
// is valid.
//
// # Versions
//
// [V072] is Gray Paper 0.7.2. In [V080] the refine context also has the slot of
// the anchor and the state root of the lookup anchor. This changes the encoding
// of work packages, reports, guarantees and blocks.
package codec
