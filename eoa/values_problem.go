// go test ./internal/tidy -update writes this file from eoa/internal/account/problem.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

const (
	// ProblemStopped means that the account is stopped until an operator calls
	// [Client.Resume]. Err wraps ErrStopped and the cause.
	ProblemStopped = account.ProblemStopped
	// ProblemFunds means that the account cannot pay: Need and Have are set.
	ProblemFunds = account.ProblemFunds
	// ProblemRequest means that a request has no nonce because of its terms: its
	// price limit is below the base fee, the price of its blobs is unknown, or its
	// gas could not be estimated. Err has its key and the reason. Requests behind it
	// go on.
	ProblemRequest = account.ProblemRequest
	// ProblemGap means that no known transaction has Nonce, and that those above it
	// wait. The executor fills the gap with a noop as soon as it can.
	ProblemGap = account.ProblemGap
	// ProblemStalled means that no transaction of the account was mined for
	// FeePolicy.StallTimeout although some are in flight. Nonce is the lowest of
	// theirs. The executor raises the price, unless a limit is reached.
	ProblemStalled = account.ProblemStalled
	// ProblemChain means that the chain cannot be read, or that the node is behind
	// or contradicts what is known. Err is why. Nothing new is sent.
	ProblemChain = account.ProblemChain
	// ProblemEndpoints means that nodes of a joined chain contradict each other
	// about the account. Err names them and their answers. The executor goes on
	// with the one that agrees best with the account's transactions.
	ProblemEndpoints = account.ProblemEndpoints
	// ProblemSigner means that the last signature failed. Err is why.
	ProblemSigner = account.ProblemSigner
	// ProblemStore means that the store failed or refused a step. Err is its error. If
	// Account is zero, a fleet could not find out which accounts have work.
	ProblemStore = account.ProblemStore
	// ProblemLease means that another worker holds the account, as is usual if
	// several processes share a store. Err wraps ErrHeld.
	ProblemLease = account.ProblemLease
	// ProblemOpener means that the [Opener] of a fleet failed, or has not returned
	// for Config.Timeout. Err is its error.
	ProblemOpener = account.ProblemOpener
)

// ProblemKind is the kind of a problem. The values never change, so that alerts and
// metrics can name them.
type ProblemKind = account.ProblemKind

// Problem is a reason for which an account makes no progress, or less than it could.
// Many problems pass without help, so an alert should depend on the time since
// Since.
//
//	type Problem struct {
//		// Account is the account; zero for a problem of a whole fleet.
//		Account Account
//		// Kind is the kind of the problem.
//		Kind ProblemKind
//		// Since is when this process first met the problem, by the executor's clock.
//		// It has been there at the end of each step since then.
//		Since time.Time
//		// Err is the error; nil for ProblemFunds, ProblemGap and ProblemStalled.
//		Err error
//		// Nonce is the nonce that is missing or that does not become mined, for
//		// ProblemGap and ProblemStalled.
//		Nonce uint64
//		// Need is the balance that pays for all transactions in flight and for the first
//		// one that could not be paid, and Have is the balance, both in wei, for
//		// ProblemFunds. If the gas of that one is not estimated yet, Need counts the
//		// 21,000 of a transfer. Other requests that wait may need more.
//		Need, Have uint256.Int
//	}
//
//	// String describes the problem for an operator.
//	func (p Problem) String() string
type Problem = account.Problem
