// Package codec encodes work packages as the Gray Paper 0.7.2 does (appendix C), and hashes them.
//
//	p := codec.WorkPackage{AuthCodeHost: service, Context: refineContext, Items: []codec.WorkItem{…}}
//	raw, err := p.Encode()
//	hash, err := p.Hash()                  // BLAKE2b-256 of it: the name under which the chain knows the package
//	back, err := codec.DecodeWorkPackage(raw)
//
// Decoding accepts exactly what encoding makes: non-minimal naturals, unordered prerequisites and trailing bytes are refused.
package codec
