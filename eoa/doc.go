// Package eoa is the vocabulary of a nonce manager for externally owned accounts: what a request is, the states it goes through, what an
// attempt to send it can come to, and the interfaces that an executor needs.
//
// The executor itself is not here yet. What is here is fixed and tested: which state may follow which ([State.CanBecome]), how a fee is
// bumped so that nodes take the replacement ([Fees.Bump]), and the three results of a send ([SendResult]).
//
// # The rule behind the types
//
// A nonce belongs to its request from assignment to finality. A send has three results: accepted, rejected for certain, or unknown.
// Unknown never frees a nonce: the same bytes are sent again and looked for by hash, because a node that answered with an error may
// have kept the transaction.
package eoa
