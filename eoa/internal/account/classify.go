package account

import (
	"fmt"
	"slices"
	"strings"
)

// Reason is why a node did not accept a transaction. [Classify] derives it from the
// node's message.
type Reason uint8

const (
	// ReasonNone means that the node gave no message, or a message that is not
	// recognized.
	ReasonNone Reason = iota
	// ReasonKnown means that the node already has this transaction.
	ReasonKnown
	// ReasonNonceTooLow means that a transaction with this nonce has been mined. It
	// may be the very transaction that was sent.
	ReasonNonceTooLow
	// ReasonNonceGap means that the node lacks the transaction with the preceding
	// nonce, and keeps no transactions behind a missing one.
	ReasonNonceGap
	// ReasonReplacement means that the node has another transaction with this
	// nonce, and that the new one does not pay enough more to replace it.
	ReasonReplacement
	// ReasonUnderpriced means that the price is below the minimum that the node
	// accepts now.
	ReasonUnderpriced
	// ReasonFunds means that the account's balance does not cover the transaction now.
	ReasonFunds
	// ReasonFull means that the node has no room for the transaction now.
	ReasonFull
	// ReasonInvalid means that no node will ever accept this transaction.
	ReasonInvalid
	// ReasonBusy means that the node asked the caller to wait before the next call.
	ReasonBusy
	// ReasonGasLimit means that the transaction's gas limit is above that of a
	// block, or above the limit per transaction (EIP-7825). The node may accept
	// the transaction with a lower gas limit.
	ReasonGasLimit
	// ReasonFeeCap means that gas limit times price exceeds the most that this node
	// relays (geth's --rpc.txfeecap). Another node may accept the transaction, or
	// the same node may accept it at a lower price.
	ReasonFeeCap

	numReasons
)

// String returns the reason in the usual words of nodes, for example "nonce too
// low".
func (r Reason) String() string {
	names := [numReasons]string{"", "already known", "nonce too low", "nonce gap", "replacement underpriced", "underpriced", "insufficient funds", "pool full", "invalid", "busy", "gas limit too high", "fee above the node's cap"}
	if r < numReasons {
		return names[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Result returns the outcome of a send that a node answered with this reason. For
// ReasonNonceTooLow that is Unknown, because the very transaction that was sent may
// have used the nonce.
func (r Reason) Result() SendResult {
	switch r {
	case ReasonKnown:
		return Accepted
	case ReasonNonceGap, ReasonReplacement, ReasonUnderpriced, ReasonFunds, ReasonFull, ReasonInvalid, ReasonGasLimit, ReasonFeeCap:
		return Rejected
	}
	return Unknown
}

// Classify derives the reason from a node's answer to eth_sendRawTransaction: the
// message of its JSON-RPC error. Do not use it for other errors, because the text
// of an HTTP or connection error does not show whether the node has the
// transaction.
//
// Classify recognizes a message that begins, in whole words, with one of the known
// texts of nodes. A gateway may put its own words and a colon in front. After a
// text for ReasonKnown, the message must end or go on with a punctuation mark.
// Classify returns ReasonNone, whose result is Unknown, if it does not recognize
// the message or if the message has two meanings.
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

// parts returns text itself, and the rest of text after each colon.
func parts(text string) []string {
	var all []string
	for more := true; more; {
		all = append(all, strings.TrimLeft(text, ` '"`))
		// Gateways put their own words and a colon before a node's message.
		_, text, more = strings.Cut(text, ":")
	}
	return all
}

// begins reports whether a node's answer begins with one of the texts of m.
func (m *meaning) begins(answer string) bool {
	return slices.ContainsFunc(m.texts, func(text string) bool { return begins(answer, text, m.reason) })
}

// begins reports whether answer begins with text, in whole words.
func begins(answer, text string, reason Reason) bool {
	// A star in text stands for any words.
	for i, part := range strings.Split(text, "*") {
		at := strings.Index(answer, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		answer = answer[at+len(part):]
	}
	// If a node's message begins with such a text, it already has the transaction, unless more
	// words change the meaning. So the text must be the whole message, or a punctuation mark
	// must follow it.
	if reason == ReasonKnown {
		return strings.Trim(answer, ` '"`) == "" || strings.ContainsRune(":.,(", rune(answer[0]))
	}
	return answer == "" || !strings.ContainsRune("_-", rune(answer[0])) && !isLetterOrDigit(answer[0])
}

func isLetterOrDigit(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' }
