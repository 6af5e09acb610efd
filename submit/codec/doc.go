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
// Parts of a block that a builder does not read, such as tickets and disputes,
// have unexported types.
//
// A [Codec] belongs to one version of the Gray Paper and to the constants of one
// chain. It needs the constants because some sequences are encoded without a
// length: an epoch mark has one entry per validator, and an assurance has one bit
// per core. A Codec is safe for concurrent use.
//
// # Canonical encoding
//
// Decode accepts exactly the bytes that Encode produces. It rejects naturals that
// are longer than necessary, prerequisites out of order, flags other than 0 and 1,
// and bytes after the end. A decoded value therefore encodes to the same bytes and
// has the same hash. To guarantee this, each type describes its encoding only once,
// and the description serves both directions (coder.go).
//
// # Hostile input
//
// No input causes a panic. A decoded value takes at most about twice the memory of
// its encoding plus 4 MiB, whatever lengths the input claims: Decode refuses more
// than about 190,000 preimages or work items that are almost empty. A decoded value
// shares no memory with the input, and hashing allocates no memory for the
// encoding. The package does not check whether a block is valid.
//
// # Versions
//
// [V072] is Gray Paper 0.7.2. In [V080], Gray Paper 0.8.0:
//
//   - the refine context has the slot of the anchor and the state root of the
//     lookup anchor,
//   - the availability specification of a report has the number of shards,
//   - a block in recent history has its slot,
//   - the epoch mark and the votes of a verdict have a count, because the size
//     of validator sets changes,
//   - a block has at most 16 verdicts, 16 culprits and 16 faults,
//   - the extrinsic hash commits to each preimage by its hash.
//
// The encodings of 0.7.2 are tested with the public vectors of JAM. No official
// vectors of 0.8.0 exist. For 0.8.0, refine contexts, reports, guarantees, headers,
// recent history and the extrinsic hash are tested with the encodings of another
// implementation; verdicts, tickets, assurances and work items only follow the
// text. Imported returns an error for a block of 0.8.0 with assurances or an epoch
// mark; use [Codec.ImportedBy] or [Effect] with the sizes of the validator sets.
package codec
