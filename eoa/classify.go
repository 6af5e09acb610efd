package eoa

import (
	"fmt"
	"strings"
)

// Reason is why a node did not take a transaction.
type Reason uint8

const (
	// ReasonNone: no error, or one that nobody knows.
	ReasonNone Reason = iota
	// ReasonKnown: the node has it already.
	ReasonKnown
	// ReasonNonceTooLow: the nonce is used, maybe by this very transaction.
	ReasonNonceTooLow
	// ReasonNonceGap: the node does not keep transactions ahead of a missing nonce.
	ReasonNonceGap
	// ReasonReplacement: the node has another one with this nonce, and the price is not enough to replace it.
	ReasonReplacement
	// ReasonUnderpriced: the price is below what the node takes now.
	ReasonUnderpriced
	// ReasonFunds: the account cannot pay for it now.
	ReasonFunds
	// ReasonFull: the node has no room now.
	ReasonFull
	// ReasonInvalid: no node will ever take it.
	ReasonInvalid
	// ReasonBusy: the node asks to be left alone for a while.
	ReasonBusy

	numReasons
)

// String returns the name in lower case.
func (r Reason) String() string {
	names := [numReasons]string{"", "already known", "nonce too low", "nonce gap", "replacement underpriced", "underpriced", "insufficient funds", "pool full", "invalid", "busy"}
	if r < numReasons {
		return names[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Result returns what a reason says about the bytes. A low nonce says nothing: the transaction itself may be what used it. Nor does a busy node.
func (r Reason) Result() SendResult {
	switch r {
	case ReasonKnown:
		return Accepted
	case ReasonNonceGap, ReasonReplacement, ReasonUnderpriced, ReasonFunds, ReasonFull, ReasonInvalid:
		return Rejected
	}
	return Unknown
}

// phrase is a part of what nodes say, in lower case, and what it means.
type phrase struct {
	text   string
	reason Reason
}

// phrases are looked for in this order: where one is a part of another, the longer one comes first.
var phrases = []phrase{
	// It is there.
	{"already known", ReasonKnown},                 // geth, reth, op, erigon
	{"known transaction", ReasonKnown},             // older geth, besu
	{"alreadyknown", ReasonKnown},                  // nethermind
	{"already imported", ReasonKnown},              // parity's heirs
	{"already exists in the mempool", ReasonKnown}, // sequencers
	{"transaction already exists in mempool", ReasonKnown},
	{"existing txn with same hash", ReasonKnown}, // erigon

	// Another one is there.
	{"replacement transaction underpriced", ReasonReplacement}, // geth, reth, op
	{"replacementnotallowed", ReasonReplacement},               // nethermind
	{"could not replace existing tx", ReasonReplacement},       // erigon
	{"can't replace blob-txn", ReasonReplacement},              // erigon
	{"replacement transaction gas price not sufficient", ReasonReplacement},
	{"transaction_replacement_underpriced", ReasonReplacement},         // besu
	{"future transaction tries to replace pending", ReasonReplacement}, // geth

	// The nonce.
	{"nonce too low", ReasonNonceTooLow}, // geth, reth, erigon, arbitrum, op, besu
	{"nonce is too low", ReasonNonceTooLow},
	{"oldnonce", ReasonNonceTooLow},      // nethermind
	{"nonce_too_low", ReasonNonceTooLow}, // besu
	{"nonce too high", ReasonNonceGap},   // arbitrum
	{"noncegap", ReasonNonceGap},         // nethermind
	{"nonce gap", ReasonNonceGap},
	{"gapped-nonce", ReasonNonceGap},            // geth, delegated accounts
	{"nonce_too_far_in_future", ReasonNonceGap}, // besu
	{"nonce too far in future", ReasonNonceGap}, // nethermind
	{"transaction nonce is too distant", ReasonNonceGap},

	// Funds, before prices: "insufficient funds for gas * price + value".
	{"insufficient funds", ReasonFunds},   // geth, reth, erigon, arbitrum, op
	{"insufficientfunds", ReasonFunds},    // nethermind
	{"upfront cost exceeds", ReasonFunds}, // besu: "transaction upfront cost … exceeds account balance"
	{"upfront_cost_exceeds_balance", ReasonFunds},
	{"overshot", ReasonFunds}, // geth: the balance does not cover all that is queued

	// No node, ever.
	{"intrinsic gas too low", ReasonInvalid},
	{"intrinsic gas exceeds gas limit", ReasonInvalid},
	{"intrinsic_gas_exceeds", ReasonInvalid},
	{"gas for floor data", ReasonInvalid},
	{"exceeds block gas limit", ReasonInvalid},
	{"exceeds_block_gas_limit", ReasonInvalid},
	{"gaslimitexceeded", ReasonInvalid},
	{"transaction gas limit too high", ReasonInvalid},
	{"oversized data", ReasonInvalid},
	{"max initcode size exceeded", ReasonInvalid},
	{"max priority fee per gas higher than max fee per gas", ReasonInvalid},
	{"transaction type not supported", ReasonInvalid},
	{"invalid sender", ReasonInvalid},
	{"invalid chain id", ReasonInvalid},
	{"sender not an eoa", ReasonInvalid},
	{"only replay-protected", ReasonInvalid},
	{"blobs in transaction", ReasonInvalid}, // geth: too many
	{"blob limit exceeded", ReasonInvalid},
	{"sidecar in blob transaction", ReasonInvalid},
	{"wrong sidecar format", ReasonInvalid},
	{"kzg verification error", ReasonInvalid},
	{"exceeds the configured cap", ReasonInvalid}, // geth: fee cap of the node
	{"sidecar after osaka", ReasonInvalid},        // reth: version 0
	{"sidecar before osaka", ReasonInvalid},
	{"sidecar unsupported post-osaka", ReasonInvalid}, // geth
	{"intrinsicgas", ReasonInvalid},                   // erigon, and those below
	{"gasuintoverflow", ReasonInvalid},
	{"rlptoolong", ReasonInvalid},
	{"initcode too large", ReasonInvalid},
	{"gas limit is too high", ReasonInvalid},
	{"transaction type is not activated", ReasonInvalid},
	{"max number of blobs exceeded", ReasonInvalid},
	{"kzgcommitment", ReasonInvalid},
	{"blob_versioned_hashes, blobs", ReasonInvalid},
	{"gas limit reached", ReasonInvalid}, // nethermind, and those below
	{"unsupported transaction type", ReasonInvalid},
	{"transaction too large", ReasonInvalid},
	{"transaction cost overflow", ReasonInvalid},
	{"failed to recover sender", ReasonInvalid},
	{"transaction invalid", ReasonInvalid},

	// Prices.
	{"transaction underpriced", ReasonUnderpriced},
	{"gas price below minimum", ReasonUnderpriced},
	{"gas price below configured minimum", ReasonUnderpriced}, // besu
	{"max fee per gas less than block base fee", ReasonUnderpriced},
	{"fee cap less than block base fee", ReasonUnderpriced},
	{"less than block base fee", ReasonUnderpriced},
	{"less than block blob gas fee", ReasonUnderpriced},
	{"feetoolow", ReasonUnderpriced},   // nethermind
	{"fee too low", ReasonUnderpriced}, // erigon
	{"gas_price_too_low", ReasonUnderpriced},
	{"gas price too low", ReasonUnderpriced},
	{"underpriced", ReasonUnderpriced}, // erigon

	// Room.
	{"txpool is full", ReasonFull},
	{"sub-pool is full", ReasonFull}, // erigon
	{"limit in txpool is full", ReasonFull},
	{"spammer", ReasonFull},
	{"pending transaction type conflict", ReasonFull}, // nethermind, and those below
	{"pendingtxsofconflictingtype", ReasonFull},
	{"delegation authority has pending", ReasonFull},
	{"out of capacity", ReasonFull},
	{"account limit exceeded", ReasonFull},
	{"in-flight transaction limit reached", ReasonFull}, // geth, delegated accounts
	{"address already reserved", ReasonFull},
	{"authority already reserved", ReasonFull},

	// Later.
	{"too many requests", ReasonBusy},
	{"rate limit", ReasonBusy},
	{"request limit", ReasonBusy},
	{"compute units", ReasonBusy},
}

// Classify returns what the text of a JSON-RPC error to eth_sendRawTransaction means. Use it for errors of that protocol only: the text of an HTTP
// error, or of a broken connection, says nothing, whatever words are in it. A text that nobody knows is ReasonNone, whose result is Unknown.
func Classify(text string) Reason {
	text = strings.ToLower(text)
	for _, p := range phrases {
		if strings.Contains(text, p.text) {
			return p.reason
		}
	}
	return ReasonNone
}
