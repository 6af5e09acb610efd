package codec

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// Header is the header of a block (GP 5.1).
type Header struct {
	// Parent is the hash of the parent block, and ParentStateRoot is the root of the state after
	// the parent.
	Parent          jamq.HeaderHash
	ParentStateRoot common.Hash
	// ExtrinsicHash commits to the extrinsic: see [Codec.ExtrinsicHash].
	ExtrinsicHash common.Hash
	// Slot is the slot of the block.
	Slot jamq.Slot
	// Epoch is set only in the first block of an epoch, and Tickets only in the
	// first block after the ticket contest. Otherwise they are nil.
	Epoch   *epochMark
	Tickets *ticketsMark
	// Author is the index of the block's author in the validator set.
	Author uint16
	// Entropy is a VRF signature of the author that contributes to the chain's entropy. Seal is the
	// author's signature over the header.
	Entropy, Seal [96]byte
	// Offenders are the Ed25519 keys of the validators that the disputes in this
	// block convict.
	Offenders [][32]byte
}

// epochMark is the part of a header that announces the entropy and the validators of the next epoch
// (GP 6.27).
type epochMark struct {
	// Entropy and TicketsEntropy are the entropy values η₀ and η₁.
	Entropy, TicketsEntropy common.Hash
	// Validators are the keys of the next validator set, in the order of the
	// validators' indices. Up to Gray Paper 0.7.2, their number is in the chain's
	// constants; from 0.8.0 on, a set can be smaller.
	Validators []validatorKeys
}

// validatorKeys are the public keys of a validator in an epoch mark.
type validatorKeys struct {
	// Bandersnatch is the validator's key for sealing blocks. Ed25519 is the key for all other
	// signatures.
	Bandersnatch, Ed25519 [32]byte
}

// ticketsMark is the part of a header that announces the tickets of the next epoch
// (GP 6.28). There is one ticket for each slot, and the owner of the ticket may
// author the block of that slot.
type ticketsMark struct {
	// Tickets are in slot order, one per slot of an epoch.
	Tickets []ticketBody
}

// validatorKeysSize is the size of the keys of one validator.
const validatorKeysSize = 32 + 32

// ticketBody is a ticket without its proof (GP 6.6).
type ticketBody struct {
	// ID identifies the ticket. Attempt is the index of the ticket among the tickets of the same
	// owner.
	ID      [32]byte
	Attempt uint8
}

func (x *Header) code(c *coder) { // GP C.22
	hash(c, &x.Parent)
	hash(c, &x.ParentStateRoot)
	hash(c, &x.ExtrinsicHash)
	u32(c, &x.Slot)
	optional(c, &x.Epoch, "epoch mark", func(c *coder, m *epochMark) {
		hash(c, &m.Entropy)
		hash(c, &m.TicketsEntropy)
		perSet(c, &m.Validators, c.codec.validators, validatorKeysSize, "validators", func(c *coder, v *validatorKeys) {
			hash(c, &v.Bandersnatch)
			hash(c, &v.Ed25519)
		})
	})
	optional(c, &x.Tickets, "tickets mark", func(c *coder, m *ticketsMark) {
		array(c, &m.Tickets, c.codec.epochLen, "tickets", func(c *coder, t *ticketBody) {
			hash(c, &t.ID)
			u8(c, &t.Attempt)
		})
	})
	u16(c, &x.Author)
	c.bytes(x.Entropy[:])
	sequence(c, &x.Offenders, hashSize, hash[[32]byte])
	c.bytes(x.Seal[:])
}
