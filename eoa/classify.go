package eoa

import (
	"fmt"
	"strings"
)

// Reason is why a node did not take a transaction.
type Reason uint8

const (
	// ReasonNone means no error, or an unrecognized one.
	ReasonNone Reason = iota
	// ReasonKnown means that the node already has the transaction.
	ReasonKnown
	// ReasonNonceTooLow means that the nonce is used, possibly by this very
	// transaction.
	ReasonNonceTooLow
	// ReasonNonceGap means that the node does not keep transactions ahead of a
	// missing nonce.
	ReasonNonceGap
	// ReasonReplacement means that the node has another transaction with this
	// nonce, and the price is too low to replace it.
	ReasonReplacement
	// ReasonUnderpriced means that the price is below what the node accepts
	// now.
	ReasonUnderpriced
	// ReasonFunds means that the account cannot pay for the transaction now.
	ReasonFunds
	// ReasonFull means that the node has no room now.
	ReasonFull
	// ReasonInvalid means that no node will ever take the transaction.
	ReasonInvalid
	// ReasonBusy means that the node asked us to wait.
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

// Result returns the send result that follows from r. ReasonNonceTooLow gives
// Unknown, because the transaction itself may have used the nonce.
func (r Reason) Result() SendResult {
	switch r {
	case ReasonKnown:
		return Accepted
	case ReasonNonceGap, ReasonReplacement, ReasonUnderpriced, ReasonFunds, ReasonFull, ReasonInvalid:
		return Rejected
	}
	return Unknown
}

// phrase is a part of a node's message, in lower case, and its meaning.
type phrase struct {
	text   string
	reason Reason
}

// phrases are searched in this order. If one contains another, the longer one
// comes first.
var phrases = []phrase{
	// The node has it.
	{"already known", ReasonKnown},                 // geth, reth, op, erigon
	{"known transaction", ReasonKnown},             // older geth, besu
	{"alreadyknown", ReasonKnown},                  // nethermind
	{"already imported", ReasonKnown},              // parity's heirs
	{"already exists in the mempool", ReasonKnown}, // sequencers
	{"transaction already exists in mempool", ReasonKnown},
	{"existing txn with same hash", ReasonKnown}, // erigon

	// The node has another one with this nonce.
	{"replacement transaction underpriced", ReasonReplacement}, // geth, reth, op
	{"replacementnotallowed", ReasonReplacement},               // nethermind
	{"could not replace existing tx", ReasonReplacement},       // erigon
	{"can't replace blob-txn", ReasonReplacement},              // erigon
	{"replacement transaction gas price not sufficient", ReasonReplacement},
	{"transaction_replacement_underpriced", ReasonReplacement},         // besu
	{"future transaction tries to replace pending", ReasonReplacement}, // geth

	// Wrong nonce.
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

	// Insufficient funds. Before prices: "insufficient funds for gas *
	// price + value".
	{"insufficient funds", ReasonFunds},   // geth, reth, erigon, arbitrum, op
	{"insufficientfunds", ReasonFunds},    // nethermind
	{"upfront cost exceeds", ReasonFunds}, // besu
	{"upfront_cost_exceeds_balance", ReasonFunds},
	{"overshot", ReasonFunds}, // geth: balance below queued cost

	// Permanently invalid.
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

	// Price too low.
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

	// No room.
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

	// Rate limits.
	{"too many requests", ReasonBusy},
	{"rate limit", ReasonBusy},
	{"request limit", ReasonBusy},
	{"compute units", ReasonBusy},
}

// Classify returns the meaning of a JSON-RPC error message in reply to
// eth_sendRawTransaction. It must not be used for other errors: the text of an
// HTTP or connection error does not show whether the node has the transaction.
// An unrecognized text gives ReasonNone, whose result is Unknown.
func Classify(text string) Reason {
	text = strings.ToLower(text)
	for _, p := range phrases {
		if strings.Contains(text, p.text) {
			return p.reason
		}
	}
	return ReasonNone
}
