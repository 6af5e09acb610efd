package account

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
	// ReasonGasLimit means that the gas limit is above that of a block, or of a
	// transaction on this chain (EIP-7825). A lower one may be accepted.
	ReasonGasLimit
	// ReasonFeeCap means that the gas limit times the price is above the most
	// that this node relays (geth's --rpc.txfeecap). Another node may take it,
	// or this one at a lower price.
	ReasonFeeCap

	numReasons
)

// String returns the name in lower case.
func (r Reason) String() string {
	names := [numReasons]string{"", "already known", "nonce too low", "nonce gap", "replacement underpriced", "underpriced", "insufficient funds", "pool full", "invalid", "busy", "gas limit too high", "fee above the node's cap"}
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
	case ReasonNonceGap, ReasonReplacement, ReasonUnderpriced, ReasonFunds, ReasonFull, ReasonInvalid, ReasonGasLimit, ReasonFeeCap:
		return Rejected
	}
	return Unknown
}

// Classify returns the meaning of a JSON-RPC error message in reply to
// eth_sendRawTransaction. It must not be used for other errors: the text of an
// HTTP or connection error does not show whether the node has the transaction.
//
// A message is recognized if it begins with the text of a node, in whole words.
// Gateways may put words and a colon before it. A message that means that the
// node has the transaction must also end there, or go on with a punctuation
// mark. A text that is not recognized, or that has two meanings, gives
// ReasonNone, whose result is Unknown.
func Classify(text string) Reason {
	found := ReasonNone
	for _, rest := range parts(strings.ToLower(text)) {
		for _, node := range nodes {
			for _, m := range node.messages {
				switch {
				case !m.begins(rest):
				case found != ReasonNone && found != m.reason:
					return ReasonNone
				default:
					found = m.reason
				}
			}
		}
	}
	return found
}

// parts returns a text from its beginning, and from the word after each colon.
func parts(text string) []string {
	var all []string
	for more := true; more; {
		all = append(all, strings.TrimLeft(text, ` '"`))
		_, text, more = strings.Cut(text, ":")
	}
	return all
}

// begins reports whether a text begins with the message, in whole words.
func (m message) begins(text string) bool {
	for i, part := range strings.Split(m.text, "*") {
		at := strings.Index(text, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		text = text[at+len(part):]
	}
	if m.reason == ReasonKnown {
		return strings.Trim(text, ` '"`) == "" || strings.ContainsRune(":.,(", rune(text[0]))
	}
	return text == "" || !strings.ContainsRune("_-", rune(text[0])) && !isLetterOrDigit(text[0])
}

func isLetterOrDigit(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' }
