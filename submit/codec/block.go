package codec

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// Block is a whole block (GP 4.2).
type Block struct {
	Header    Header
	Extrinsic Extrinsics
}

// Extrinsics is everything in a block but its header (GP 4.3).
type Extrinsics struct {
	// Tickets enter the contest for the next epoch's slots.
	Tickets Tickets
	// Preimages are data that services asked for.
	Preimages Preimages
	// Guarantees put work reports on cores.
	Guarantees Guarantees
	// Assurances say which reports are available.
	Assurances Assurances
	// Disputes hold verdicts on reports.
	Disputes Disputes
}

// The parts of an extrinsic that are sequences.
type (
	// Tickets is E_T.
	Tickets []TicketEnvelope
	// Preimages is E_P.
	Preimages []Preimage
	// Guarantees is E_G.
	Guarantees []Guarantee
	// Assurances is E_A.
	Assurances []Assurance
)

// TicketEnvelope is a ticket with the proof that some validator owns it (GP 6.29).
type TicketEnvelope struct {
	// Attempt is the owner's entry, Signature the ring VRF proof.
	Attempt   uint8
	Signature [784]byte
}

// Preimage is data that a service asked for (GP 12.35).
type Preimage struct {
	// Service asked for Data.
	Service jamq.ServiceID
	Data    []byte
}

// Assurance is one validator's word on which reports it holds its parts of (GP 11.10).
type Assurance struct {
	// Anchor is the parent block.
	Anchor jamq.HeaderHash
	// Bitfield has a bit for each core, the lowest bit of the first byte for core 0.
	Bitfield []byte
	// Validator is the index in the validator set.
	Validator uint16
	Signature [64]byte
}

// Disputes is E_D (GP 10.2).
type Disputes struct {
	Verdicts []Verdict
	Culprits []Culprit
	Faults   []Fault
}

// Verdict is the judgement of two thirds of the validators and one on a report.
type Verdict struct {
	// Target is the report's hash.
	Target common.Hash
	// Epoch is the index of the epoch whose validators judged.
	Epoch uint32
	// Votes are exactly ⌊2V/3⌋+1.
	Votes []Vote
}

// Vote is one validator's judgement.
type Vote struct {
	// Valid says that the report is right.
	Valid     bool
	Validator uint16
	Signature [64]byte
}

// Culprit is a validator that guaranteed a bad report.
type Culprit struct {
	// Target is the report's hash, Key the validator's Ed25519 key.
	Target    common.Hash
	Key       [32]byte
	Signature [64]byte
}

// Fault is a validator whose judgement a verdict contradicts.
type Fault struct {
	// Target is the report's hash, Valid the judgement, Key the validator's Ed25519 key.
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
	voteSize       = 1 + 2 + 64
	culpritSize    = 32 + 32 + 64
	faultSize      = 32 + 1 + 32 + 64
)

func (x *Block) code(c *coder) {
	x.Header.code(c)
	x.Extrinsic.code(c)
}

func (x *Extrinsics) code(c *coder) { // GP C.16: tickets, preimages, guarantees, assurances, disputes
	x.Tickets.code(c)
	x.Preimages.code(c)
	x.Guarantees.code(c)
	x.Assurances.code(c)
	x.Disputes.code(c)
}

func (x *Tickets) code(c *coder) {
	sequence(c, (*[]TicketEnvelope)(x), ticketSize, func(c *coder, t *TicketEnvelope) {
		u8(c, &t.Attempt)
		c.bytes(t.Signature[:])
	})
}

func (x *Preimages) code(c *coder) {
	sequence(c, (*[]Preimage)(x), leastPreimage, func(c *coder, p *Preimage) {
		u32(c, &p.Service)
		c.blob(&p.Data)
	})
}

func (x *Guarantees) code(c *coder) {
	sequence(c, (*[]Guarantee)(x), leastGuarantee, func(c *coder, g *Guarantee) { g.code(c) })
}

func (x *Assurances) code(c *coder) {
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
		c.fail(fmt.Errorf("%w: the bitfield speaks for cores beyond %d", ErrNonCanonical, c.codec.cores))
	}
	u16(c, &x.Validator)
	c.bytes(x.Signature[:])
}

func (x *Disputes) code(c *coder) {
	sequence(c, &x.Verdicts, hashSize+4+c.codec.votesOfVerdict*voteSize, func(c *coder, v *Verdict) {
		hash(c, &v.Target)
		u32(c, &v.Epoch)
		array(c, &v.Votes, c.codec.votesOfVerdict, "votes", func(c *coder, v *Vote) {
			c.flag(&v.Valid, "vote")
			u16(c, &v.Validator)
			c.bytes(v.Signature[:])
		})
	})
	sequence(c, &x.Culprits, culpritSize, func(c *coder, p *Culprit) {
		hash(c, &p.Target)
		hash(c, &p.Key)
		c.bytes(p.Signature[:])
	})
	sequence(c, &x.Faults, faultSize, func(c *coder, f *Fault) {
		hash(c, &f.Target)
		c.flag(&f.Valid, "fault")
		hash(c, &f.Key)
		c.bytes(f.Signature[:])
	})
}

// guaranteesByHash is E_G with each report replaced by its hash, which is what the extrinsic hash covers.
type guaranteesByHash struct {
	guarantees Guarantees
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

// ExtrinsicHash returns the hash that a header carries of its extrinsic (GP 5.4): over the hashes of its five parts, where guarantees
// count with the hashes of their reports. Errors are those of Encode.
func (c *Codec) ExtrinsicHash(x *Extrinsics) (common.Hash, error) {
	g := &guaranteesByHash{guarantees: x.Guarantees, reports: make([][32]byte, len(x.Guarantees))}
	for i := range x.Guarantees {
		var err error
		if g.reports[i], err = c.Hash(&x.Guarantees[i].Report); err != nil {
			return common.Hash{}, err
		}
	}
	var parts []byte
	for _, part := range []Value{&x.Tickets, &x.Preimages, g, &x.Assurances, &x.Disputes} {
		h, err := c.Hash(part)
		if err != nil {
			return common.Hash{}, err
		}
		parts = append(parts, h[:]...)
	}
	return blake2b.Sum256(parts), nil
}
