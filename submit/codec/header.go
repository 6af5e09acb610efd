package codec

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// Header is a block's header (GP 5.1).
type Header struct {
	// Parent is the block before it, ParentStateRoot the state root after that one.
	Parent          jamq.HeaderHash
	ParentStateRoot common.Hash
	// ExtrinsicHash commits to the extrinsic: see [Codec.ExtrinsicHash].
	ExtrinsicHash common.Hash
	// Slot is the time slot in which it was authored.
	Slot jamq.Slot
	// Epoch is in the first block of an epoch, Tickets in the first after the contest for tickets is over; else nil.
	Epoch   *EpochMark
	Tickets *TicketsMark
	// Author is the author's index in the validator set.
	Author uint16
	// Entropy is the author's VRF signature that adds to the chain's entropy, Seal the one over the header.
	Entropy, Seal [96]byte
	// Offenders are the Ed25519 keys of validators that disputes convict in this block.
	Offenders [][32]byte
}

// EpochMark tells the next epoch's entropy and validators (GP 6.27).
type EpochMark struct {
	// Entropy and TicketsEntropy are η₀ and η₁.
	Entropy, TicketsEntropy common.Hash
	// Validators are the keys of the next validator set, as many as the chain has validators.
	Validators []ValidatorKeys
}

// ValidatorKeys are a validator's public keys that an epoch mark names.
type ValidatorKeys struct {
	// Bandersnatch seals blocks, Ed25519 signs everything else.
	Bandersnatch, Ed25519 [32]byte
}

// TicketsMark are the tickets that will seal the next epoch, one for each slot of it (GP 6.28).
type TicketsMark struct {
	// Tickets are in the order of slots.
	Tickets []TicketBody
}

// TicketBody is a ticket by which a slot's author is known (GP 6.6).
type TicketBody struct {
	// ID is its identifier, Attempt the entry of its owner.
	ID      [32]byte
	Attempt uint8
}

func (x *Header) code(c *coder) { // GP C.22
	hash(c, &x.Parent)
	hash(c, &x.ParentStateRoot)
	hash(c, &x.ExtrinsicHash)
	u32(c, &x.Slot)
	optional(c, &x.Epoch, "epoch mark", func(c *coder, m *EpochMark) {
		hash(c, &m.Entropy)
		hash(c, &m.TicketsEntropy)
		array(c, &m.Validators, c.codec.validators, "validators", func(c *coder, v *ValidatorKeys) {
			hash(c, &v.Bandersnatch)
			hash(c, &v.Ed25519)
		})
	})
	optional(c, &x.Tickets, "tickets mark", func(c *coder, m *TicketsMark) {
		array(c, &m.Tickets, c.codec.epochLen, "tickets", func(c *coder, t *TicketBody) {
			hash(c, &t.ID)
			u8(c, &t.Attempt)
		})
	})
	u16(c, &x.Author)
	c.bytes(x.Entropy[:])
	sequence(c, &x.Offenders, hashSize, hash[[32]byte])
	c.bytes(x.Seal[:])
}
