package account

import (
	"fmt"
	"slices"
	"strings"
)

// Reason is why a node did not take a transaction. [Classify] finds it in the node's message.
type Reason uint8

const (
	// ReasonNone means that the node gave no message, or one that is not known.
	ReasonNone Reason = iota
	// ReasonKnown means that the node already has this transaction.
	ReasonKnown
	// ReasonNonceTooLow means that a transaction with this nonce has been mined, possibly
	// this very one.
	ReasonNonceTooLow
	// ReasonNonceGap means that the node lacks the transaction with the nonce before, and
	// keeps none behind a missing one.
	ReasonNonceGap
	// ReasonReplacement means that the node has another transaction with this nonce, and this
	// one does not pay enough more to replace it.
	ReasonReplacement
	// ReasonUnderpriced means that the price is below the least that the node accepts now.
	ReasonUnderpriced
	// ReasonFunds means that the account's balance does not cover the transaction now.
	ReasonFunds
	// ReasonFull means that the node has no room for the transaction now.
	ReasonFull
	// ReasonInvalid means that no node will ever take this transaction.
	ReasonInvalid
	// ReasonBusy means that the node asked us to wait before the next call.
	ReasonBusy
	// ReasonGasLimit means that the gas limit is higher than that of a block, or than a
	// transaction on this chain may have (EIP-7825). A lower one may be accepted.
	ReasonGasLimit
	// ReasonFeeCap means that the gas limit times the price is above the most that this node
	// relays (geth's --rpc.txfeecap). Another node may take the transaction, or this one at a
	// lower price.
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

// Result returns the outcome of a send that a node answered with this reason.
// ReasonNonceTooLow is Unknown, because this very transaction may have used the nonce.
func (r Reason) Result() SendResult {
	switch r {
	case ReasonKnown:
		return Accepted
	case ReasonNonceGap, ReasonReplacement, ReasonUnderpriced, ReasonFunds, ReasonFull, ReasonInvalid, ReasonGasLimit, ReasonFeeCap:
		return Rejected
	}
	return Unknown
}

// Classify returns the reason that a node's answer to eth_sendRawTransaction gives, from the
// message of its JSON-RPC error. Do not use it for other errors: the text of an HTTP or
// connection error does not show whether the node has the transaction.
//
// A message is recognized if it begins with one of the known texts of nodes, in whole words.
// A gateway may put words and a colon before it. If the text means that the node has the
// transaction, the message must also end there or go on with a punctuation mark. If a message
// is not recognized or has two meanings, Classify returns ReasonNone, whose result is
// Unknown.
func Classify(text string) Reason {
	found := ReasonNone
	for _, rest := range parts(strings.ToLower(text)) {
		for _, m := range meanings {
			switch {
			case !m.begins(rest):
			case found != ReasonNone && found != m.reason:
				return ReasonNone
			default:
				found = m.reason
			}
		}
	}
	return found
}

// parts returns the text from its beginning, and again from behind each colon, because
// gateways put their own words before a node's message.
func parts(text string) []string {
	var all []string
	for more := true; more; {
		all = append(all, strings.TrimLeft(text, ` '"`))
		_, text, more = strings.Cut(text, ":")
	}
	return all
}

// begins reports whether an answer begins with one of the texts.
func (m *meaning) begins(answer string) bool {
	return slices.ContainsFunc(m.texts, func(text string) bool { return begins(answer, text, m.reason) })
}

// begins reports whether an answer begins with a node's text, in whole words.
func begins(answer, text string, reason Reason) bool {
	for i, part := range strings.Split(text, "*") {
		at := strings.Index(answer, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		answer = answer[at+len(part):]
	}
	if reason == ReasonKnown {
		return strings.Trim(answer, ` '"`) == "" || strings.ContainsRune(":.,(", rune(answer[0]))
	}
	return answer == "" || !strings.ContainsRune("_-", rune(answer[0])) && !isLetterOrDigit(answer[0])
}

func isLetterOrDigit(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' }
