// go test ./internal/tidy -update writes this file from eoa/internal/account/classify.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Reason is why a node did not take a transaction.
//
//	// String returns the name in lower case.
//	func (r Reason) String() string
//
//	// Result returns the send result that follows from r. ReasonNonceTooLow gives
//	// Unknown, because the transaction itself may have used the nonce.
//	func (r Reason) Result() SendResult
type Reason = account.Reason

const (
	// ReasonNone means no error, or an unrecognized one.
	ReasonNone = account.ReasonNone
	// ReasonKnown means that the node already has the transaction.
	ReasonKnown = account.ReasonKnown
	// ReasonNonceTooLow means that the nonce is used, possibly by this very
	// transaction.
	ReasonNonceTooLow = account.ReasonNonceTooLow
	// ReasonNonceGap means that the node does not keep transactions ahead of a
	// missing nonce.
	ReasonNonceGap = account.ReasonNonceGap
	// ReasonReplacement means that the node has another transaction with this
	// nonce, and the price is too low to replace it.
	ReasonReplacement = account.ReasonReplacement
	// ReasonUnderpriced means that the price is below what the node accepts
	// now.
	ReasonUnderpriced = account.ReasonUnderpriced
	// ReasonFunds means that the account cannot pay for the transaction now.
	ReasonFunds = account.ReasonFunds
	// ReasonFull means that the node has no room now.
	ReasonFull = account.ReasonFull
	// ReasonInvalid means that no node will ever take the transaction.
	ReasonInvalid = account.ReasonInvalid
	// ReasonBusy means that the node asked us to wait.
	ReasonBusy = account.ReasonBusy
	// ReasonGasLimit means that the gas limit is above that of a block, or of a
	// transaction on this chain (EIP-7825). A lower one may be accepted.
	ReasonGasLimit = account.ReasonGasLimit
	// ReasonFeeCap means that the gas limit times the price is above the most
	// that this node relays (geth's --rpc.txfeecap). Another node may take it,
	// or this one at a lower price.
	ReasonFeeCap = account.ReasonFeeCap
)

// Classify returns the meaning of a JSON-RPC error message in reply to
// eth_sendRawTransaction. It must not be used for other errors: the text of an
// HTTP or connection error does not show whether the node has the transaction.
//
// A message is recognized if it begins with the text of a node, in whole words.
// Gateways may put words and a colon before it. A message that means that the
// node has the transaction must also end there, or go on with a punctuation
// mark. A text that is not recognized, or that has two meanings, gives
// ReasonNone, whose result is Unknown.
func Classify(text string) Reason { return account.Classify(text) }
