// Package codec encodes what a builder exchanges with a JAM network as the Gray Paper does (appendix C): naturals, work packages, work
// reports, guarantees, headers and whole blocks, and the hashes over them.
//
// A [Codec] belongs to a version of the Gray Paper and to a chain's constants, because some sequences have no length of their own: an
// epoch mark holds as many keys as there are validators, an assurance as many bits as there are cores.
//
//	c, err := codec.New(codec.V072, jamq.Tiny())
//	p := codec.WorkPackage{AuthCodeHost: service, Context: refineContext, Items: []codec.WorkItem{…}}
//	raw, err := c.Encode(&p)
//	hash, err := c.PackageHash(&p)               // the name under which the chain knows the package
//	back, err := codec.Decode[codec.WorkPackage](c, raw)
//	block, err := codec.Decode[codec.Block](c, fromAPeer)
//	seen, err := c.Imported(&block)              // the block as bundlequeue wants it
//
// # Both directions are one description
//
// Each type describes its encoding once, and the same description writes and reads (coder.go). Decoding accepts exactly what encoding
// makes: naturals that are longer than they must be, prerequisites out of order, flags that are neither 0 nor 1 and bytes after the end
// are refused. So what decodes encodes to the same bytes, and hashes to the same hash.
//
// # Hostile input
//
// Nothing panics, and no length is believed: memory grows with the bytes that are there, at most by a small constant factor. What is
// decoded shares no memory with the input. Whether a block is valid is another question, which this package does not ask.
//
// # Versions
//
// [V072] is Gray Paper 0.7.2. [V080] differs in the refine context, which names the anchor's slot and the lookup anchor's state root as well;
// with it work packages, reports, guarantees and blocks differ.
package codec
