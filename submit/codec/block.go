package codec

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// Block is a whole block: a Header and an Extrinsic (GP 4.2).
type Block struct {
	Header    Header
	Extrinsic Extrinsics
}

// Extrinsics is everything in a block except its header (GP 4.3).
type Extrinsics struct {
	// Tickets are the entries of validators in the contest for the block slots of
	// the next epoch.
	Tickets tickets
	// Preimages are data that services have requested.
	Preimages preimages
	// Guarantees put work reports on cores.
	Guarantees guarantees
	// Assurances tell which reports' data is available.
	Assurances assurances
	// Disputes contain verdicts on reports.
	Disputes disputes
}

// The parts of an extrinsic that are lists.
type (
	// tickets is the tickets extrinsic E_T (GP 6.29).
	tickets []ticketEnvelope
	// preimages is the preimages extrinsic E_P (GP 12.35).
	preimages []Preimage
	// guarantees is the guarantees extrinsic E_G (GP 11.23).
	guarantees []Guarantee
	// assurances is the assurances extrinsic E_A (GP 11.10).
	assurances []Assurance
)

// ticketEnvelope is a ticket together with a proof that some validator owns it. The
// proof does not reveal which validator (GP 6.29).
type ticketEnvelope struct {
	// Attempt is the index of the ticket among the tickets of the same owner. Signature is the ring
	// VRF proof.
	Attempt   uint8
	Signature [784]byte
}

// Preimage is data that a service has requested (GP 12.35).
type Preimage struct {
	// Service is the service that requested Data.
	Service jamq.ServiceID
	Data    []byte
}

// Assurance is the statement of one validator that it holds its share of the data of certain
// reports (GP 11.10).
type Assurance struct {
	// Anchor is the hash of the parent block.
	Anchor jamq.HeaderHash
	// Bitfield has one bit for each core: 1 means that the validator holds data of the report on
	// that core. Core 0 is the lowest bit of the first byte.
	Bitfield []byte
	// Validator is the index of the validator in the validator set.
	Validator uint16
	Signature [64]byte
}

// disputes is the disputes extrinsic E_D (GP 10.2). Verdicts are judgements about
// reports. Culprits are validators that guaranteed an invalid report, and Faults
// are validators that voted against a verdict.
type disputes struct {
	Verdicts []verdict
	Culprits []culprit
	Faults   []fault
}

// verdict is the judgement of more than two thirds of the validators about the
// validity of a report.
type verdict struct {
	// Target is the hash of the report.
	Target common.Hash
	// Epoch is the index of the epoch whose validators voted.
	Epoch uint32
	// Votes are the votes of more than two thirds of the validators. Up to Gray
	// Paper 0.7.2 there are exactly ⌊2V/3⌋+1 votes, and V is a constant of the
	// chain. From 0.8.0 on, V is the size of the set that voted, which the encoding
	// does not contain.
	Votes []vote
}

// vote is the judgement of one validator.
type vote struct {
	// Valid is true if the validator considers the report correct.
	Valid     bool
	Validator uint16
	Signature [64]byte
}

// culprit is a validator that guaranteed an invalid report.
type culprit struct {
	// Target is the hash of the invalid report. Key is the Ed25519 key of the convicted validator.
	Target    common.Hash
	Key       [32]byte
	Signature [64]byte
}

// fault is a validator that is convicted because its vote contradicts a verdict.
type fault struct {
	// Target is the hash of the report, Valid is the vote of the validator, and Key is the
	// validator's Ed25519 key.
	Target    common.Hash
	Valid     bool
	Key       [32]byte
	Signature [64]byte
}

const (
	ticketSize     = 1 + 784
	leastPreimage  = 4 + 1
	leastGuarantee = leastReport + 4 + 1
	leastAssurance = 32 + 2 + 64
	leastVerdict   = 32 + 4 + 1
	voteSize       = 1 + 2 + 64
	culpritSize    = 32 + 32 + 64
	faultSize      = 32 + 1 + 32 + 64
)

func (x *Block) code(c *coder) {
	x.Header.code(c)
	x.Extrinsic.code(c)
}

// code encodes or decodes the parts in the order of GP C.16.
func (x *Extrinsics) code(c *coder) {
	x.Tickets.code(c)
	x.Preimages.code(c)
	x.Guarantees.code(c)
	x.Assurances.code(c)
	x.Disputes.code(c)
}

func (x *tickets) code(c *coder) {
	sequence(c, (*[]ticketEnvelope)(x), ticketSize, func(c *coder, t *ticketEnvelope) {
		u8(c, &t.Attempt)
		c.bytes(t.Signature[:])
	})
}

func (x *preimages) code(c *coder) {
	sequence(c, (*[]Preimage)(x), leastPreimage, func(c *coder, p *Preimage) {
		u32(c, &p.Service)
		c.blob(&p.Data)
	})
}

func (x *guarantees) code(c *coder) {
	sequence(c, (*[]Guarantee)(x), leastGuarantee, func(c *coder, g *Guarantee) { g.code(c) })
}

func (x *assurances) code(c *coder) {
	sequence(c, (*[]Assurance)(x), leastAssurance, func(c *coder, a *Assurance) { a.code(c) })
}

func (x *Assurance) code(c *coder) {
	hash(c, &x.Anchor)
	size := c.codec.bitfieldSize
	if c.reads {
		x.Bitfield = append([]byte(nil), c.take(uint64(size))...)
	} else if len(x.Bitfield) != size {
		c.fail(fmt.Errorf("%w: bitfield of %d bytes, want %d", ErrWrongLength, len(x.Bitfield), size))
	} else {
		c.bytes(x.Bitfield)
	}
	if spare := size*8 - c.codec.cores; c.err == nil && spare > 0 && x.Bitfield[size-1]>>(8-spare) != 0 {
		c.fail(fmt.Errorf("%w: the bitfield has bits for cores beyond %d", ErrNonCanonical, c.codec.cores))
	}
	u16(c, &x.Validator)
	c.bytes(x.Signature[:])
}

// maxOffenses is the maximum number of verdicts in a block, and also of culprits and of faults,
// from Gray Paper 0.8.0 on (10.2).
const maxOffenses = 16

func (x *disputes) code(c *coder) {
	defer func() {
		if n := max(len(x.Verdicts), len(x.Culprits), len(x.Faults)); c.codec.version >= V080 && n > maxOffenses {
			c.fail(fmt.Errorf("%w: %d verdicts, culprits or faults, want at most %d", ErrTooLarge, n, maxOffenses))
		}
	}()
	sequence(c, &x.Verdicts, leastVerdict, func(c *coder, v *verdict) {
		hash(c, &v.Target)
		u32(c, &v.Epoch)
		perSet(c, &v.Votes, c.codec.votesOfVerdict, voteSize, "votes", func(c *coder, v *vote) {
			c.flag(&v.Valid, "vote")
			u16(c, &v.Validator)
			c.bytes(v.Signature[:])
		})
	})
	sequence(c, &x.Culprits, culpritSize, func(c *coder, p *culprit) {
		hash(c, &p.Target)
		hash(c, &p.Key)
		c.bytes(p.Signature[:])
	})
	sequence(c, &x.Faults, faultSize, func(c *coder, f *fault) {
		hash(c, &f.Target)
		c.flag(&f.Valid, "fault")
		hash(c, &f.Key)
		c.bytes(f.Signature[:])
	})
}

// guaranteesByHash is the guarantees extrinsic E_G with a hash in place of each
// report. The extrinsic hash in a header is computed from this form.
type guaranteesByHash struct {
	guarantees guarantees
	reports    [][32]byte
}

func (x *guaranteesByHash) code(c *coder) {
	n := uint64(len(x.guarantees))
	natural(c, &n, "count")
	for i := range x.guarantees {
		hash(c, &x.reports[i])
		x.guarantees[i].codeCredential(c)
	}
}

// preimagesByHash is the preimages extrinsic E_P with a hash in place of the data
// of each preimage. From Gray Paper 0.8.0 on, the extrinsic hash is computed from
// this form.
type preimagesByHash preimages

func (x *preimagesByHash) code(c *coder) {
	n := uint64(len(*x))
	natural(c, &n, "count")
	for i := range *x {
		u32(c, &(*x)[i].Service)
		h := blake2b.Sum256((*x)[i].Data)
		hash(c, &h)
	}
}

// ExtrinsicHash returns the hash by which a header commits to the extrinsic of its
// block (GP 5.4). It is the hash over the hashes of the five parts. In the
// guarantees, a hash stands in place of each report. From Gray Paper 0.8.0 on, a
// hash also stands in place of the data of each preimage. Errors are those of
// Encode.
func (c *Codec) ExtrinsicHash(x *Extrinsics) (common.Hash, error) {
	g := &guaranteesByHash{guarantees: x.Guarantees, reports: make([][32]byte, len(x.Guarantees))}
	for i := range x.Guarantees {
		var err error
		if g.reports[i], err = c.hash(&x.Guarantees[i].Report); err != nil {
			return common.Hash{}, err
		}
	}
	preimages := Value(&x.Preimages)
	if c.version >= V080 {
		preimages = (*preimagesByHash)(&x.Preimages)
	}
	var parts []byte
	for _, part := range []Value{&x.Tickets, preimages, g, &x.Assurances, &x.Disputes} {
		h, err := c.hash(part)
		if err != nil {
			return common.Hash{}, err
		}
		parts = append(parts, h[:]...)
	}
	return blake2b.Sum256(parts), nil
}
