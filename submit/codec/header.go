package codec

import (
	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq"
)

// Header is the header of a block (GP 5.1).
type Header struct {
	// Parent is the hash of the parent block, and ParentStateRoot the state
	// root after it.
	Parent          jamq.HeaderHash
	ParentStateRoot common.Hash
	// ExtrinsicHash commits to the extrinsic: see [Codec.ExtrinsicHash].
	ExtrinsicHash common.Hash
	// Slot is the slot of the block.
	Slot jamq.Slot
	// Epoch is set in the first block of an epoch, and Tickets in the first
	// block after the ticket contest. They are nil in other blocks.
	Epoch   *epochMark
	Tickets *ticketsMark
	// Author is the index of the block's author in the validator set.
	Author uint16
	// Entropy is the author's VRF signature for the chain's entropy, and Seal
	// the author's signature of the header.
	Entropy, Seal [96]byte
	// Offenders are the Ed25519 keys of the validators that disputes convict in
	// this block.
	Offenders [][32]byte
}

// epochMark announces the entropy and the validators of the next epoch (GP
// 6.27).
type epochMark struct {
	// Entropy and TicketsEntropy are the entropy values η₀ and η₁.
	Entropy, TicketsEntropy common.Hash
	// Validators are the keys of the next validator set, one entry per
	// validator. Up to Gray Paper 0.7.2 their number is that of the chain's
	// constants; from 0.8.0 on a set can be smaller.
	Validators []validatorKeys
}

// validatorKeys are the public keys of a validator in an epoch mark.
type validatorKeys struct {
	// Bandersnatch is the key for sealing blocks, and Ed25519 the key for all
	// other signatures.
	Bandersnatch, Ed25519 [32]byte
}

// ticketsMark announces the tickets that seal the blocks of the next epoch, one
// for each slot (GP 6.28).
type ticketsMark struct {
	// Tickets are in slot order, one per slot of an epoch.
	Tickets []ticketBody
}

// validatorKeysSize is the size of the keys of one validator.
const validatorKeysSize = 32 + 32

// ticketBody is a ticket without its proof (GP 6.6).
type ticketBody struct {
	// ID identifies the ticket. Attempt is its index among its owner's tickets.
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
