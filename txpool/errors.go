package txpool

import (
	"cmp"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
)

// These are the errors of the pool. If geth has an error for the same case, the text is geth's,
// because wallets parse it. A returned error wraps one of these and adds the actual and the
// required value.
var (
	// ErrInvalidConfig is wrapped by every error of Config.Validate.
	ErrInvalidConfig = errors.New("txpool: invalid config")

	// ErrInvariant is wrapped by the errors of Pool.Check. It means that the
	// pool's data is inconsistent, because of a bug or a memory fault.
	ErrInvariant = errors.New("txpool: invariant violated")

	// These errors mean that the transaction is invalid in itself. See [Spam].

	// ErrMalformed is returned if the bytes are not the binary encoding of a transaction
	// (EIP-2718). It is also returned for a nil transaction, and for one that cannot be encoded.
	ErrMalformed = errors.New("malformed transaction")
	// ErrInvalidSender is returned if no sender can be recovered from the
	// signature, or if Config.Sender fails.
	ErrInvalidSender = errors.New("invalid sender")
	// ErrInvalidChainID is returned if the transaction is signed for another
	// chain. It is go-ethereum's error.
	ErrInvalidChainID = types.ErrInvalidChainId
	// ErrUnprotected is returned for a legacy transaction that can be replayed
	// on any chain (EIP-155), unless Config.AcceptUnprotected is set.
	ErrUnprotected = errors.New("only replay-protected (EIP-155) transactions allowed over RPC")
	// ErrTypeNotSupported is returned if the pool does not accept the
	// transaction type. It is go-ethereum's error.
	ErrTypeNotSupported = types.ErrTxTypeNotSupported
	// ErrOversized is returned if the encoding is longer than Config.MaxTxSize.
	ErrOversized = errors.New("oversized data")
	// ErrMaxInitCodeSize is returned if the init code of a contract creation is
	// too long (EIP-3860).
	ErrMaxInitCodeSize = errors.New("max initcode size exceeded")
	// ErrEmptyAuthorizations is returned for a set-code transaction without
	// authorizations (EIP-7702).
	ErrEmptyAuthorizations = errors.New("set code tx needs at least one authorization tuple")
	// ErrSetCodeCreate is returned for a set-code transaction that creates a
	// contract (EIP-7702).
	ErrSetCodeCreate = errors.New("set code tx cannot create a contract")
	// ErrTooManyAuthorizations is returned if a transaction has more than
	// MaxAuthorizations authorizations.
	ErrTooManyAuthorizations = errors.New("too many authorizations")
	// ErrMissingBlobHashes is returned for a blob transaction without blobs
	// (EIP-4844).
	ErrMissingBlobHashes = errors.New("blob transaction missing blob hashes")
	// ErrGasLimit is returned if the gas limit exceeds Config.BlockGasLimit.
	ErrGasLimit = errors.New("exceeds block gas limit")
	// ErrTxGasLimit is returned if the gas limit exceeds Config.MaxTxGas, but not
	// Config.BlockGasLimit.
	ErrTxGasLimit = errors.New("transaction gas limit too high")
	// ErrIntrinsicGas is returned if the gas limit is below the cost of the transaction before its
	// first instruction.
	ErrIntrinsicGas = errors.New("intrinsic gas too low")
	// ErrFloorDataGas is returned if the gas limit is below the minimum cost of
	// the data (EIP-7623).
	ErrFloorDataGas = errors.New("insufficient gas for floor data gas cost")
	// ErrTipAboveFeeCap is returned if the tip cap is above the fee cap
	// (EIP-1559).
	ErrTipAboveFeeCap = errors.New("max priority fee per gas higher than max fee per gas")
	// ErrNegativeValue is returned if the value or a price is negative.
	ErrNegativeValue = errors.New("negative value")
	// ErrFeeCapTooHigh is returned if the fee cap exceeds 256 bits.
	ErrFeeCapTooHigh = errors.New("max fee per gas higher than 2^256-1")
	// ErrTipTooHigh is returned if the tip cap exceeds 256 bits.
	ErrTipTooHigh = errors.New("max priority fee per gas higher than 2^256-1")
	// ErrNonceMax is returned if the nonce is 2^64-1, which EIP-2681 forbids.
	ErrNonceMax = errors.New("nonce has max value")

	// These errors depend on the state of the pool, the chain or the sender.

	// ErrAlreadyKnown is returned if the same transaction is in the pool or
	// held aside.
	ErrAlreadyKnown = errors.New("already known")
	// ErrUnderpriced is returned if the transaction pays less than the floor, or if the pool is
	// full and the transaction does not pay more than the worst one in it.
	ErrUnderpriced = errors.New("transaction underpriced")
	// ErrReplaceUnderpriced is returned if a replacement does not pay enough more than
	// the replaced transaction, or if one of them is a blob transaction and the other
	// is not.
	ErrReplaceUnderpriced = errors.New("replacement transaction underpriced")
	// ErrReplaceOversized is returned if the encoding of a replacement is much longer
	// than the encoding of the replaced transaction.
	ErrReplaceOversized = errors.New("replacement transaction oversized")
	// ErrReplaceTooOften is returned if the nonce was replaced
	// ten times within a minute.
	ErrReplaceTooOften = errors.New("replacement transaction too soon")
	// ErrReplaced is returned if the same transaction was replaced recently:
	// see Config.QuarantineTime.
	ErrReplaced = errors.New("transaction was replaced")
	// ErrQuarantined is returned if the same transaction failed recently while
	// a block was built: see Config.QuarantineTime.
	ErrQuarantined = errors.New("transaction failed in building")
	// ErrInBundle is returned if a session has locked the transaction with this
	// nonce.
	ErrInBundle = errors.New("transaction is in a bundle")
	// ErrNonceTooLow is returned if the account's nonce is higher.
	ErrNonceTooLow = errors.New("nonce too low")
	// ErrNonceTooHigh is returned if the nonce exceeds the account's by more
	// than Config.MaxNonceDistance returns.
	ErrNonceTooHigh = errors.New("nonce too high")
	// ErrInsufficientFunds is returned if the balance does not cover all
	// transactions of the sender together.
	ErrInsufficientFunds = errors.New("insufficient funds for gas * price + value")
	// ErrSenderLimit is returned if the sender has Config.MaxPerSender
	// transactions.
	ErrSenderLimit = errors.New("account limit exceeded")
	// ErrDelegatedLimit is returned if the sender is delegated or about to be (EIP-7702), and
	// Config.MaxDelegated of its transactions can already run.
	ErrDelegatedLimit = errors.New("in-flight transaction limit reached for delegated accounts")
	// ErrDelegatedGap is returned if the sender is delegated or about to be (EIP-7702), and the
	// transaction does not have the sender's next nonce.
	ErrDelegatedGap = errors.New("gapped-nonce tx from delegated accounts")
	// ErrAuthorityReserved is returned if the transaction would delegate an account (EIP-7702) that
	// already has too many transactions in the pool for a delegated account: see
	// Config.MaxDelegated.
	ErrAuthorityReserved = errors.New("authority already reserved")
	// ErrPoolFull is returned if the pool is full and no worse transaction can
	// be displaced.
	ErrPoolFull = errors.New("txpool is full")
	// ErrState is returned if the host's State fails to return the account.
	ErrState = errors.New("account state unavailable")
	// These errors are reasons of dropped transactions, or concern one that is not there.

	// ErrExpired is the reason of transactions that were older than
	// Config.Lifetime.
	ErrExpired = errors.New("txpool: transaction expired")
	// ErrRemoved is the reason of transactions that the host removed with
	// Pool.Remove.
	ErrRemoved = errors.New("txpool: transaction removed")
	// ErrNotFound is returned if the transaction is not in the pool.
	ErrNotFound = errors.New("txpool: transaction not found")
)

// spam lists the errors of transactions that are invalid in themselves. An honest
// client never causes one of these errors, whatever the state of the chain.
var spam = []error{
	ErrMalformed, ErrInvalidSender, ErrInvalidChainID, ErrTypeNotSupported, ErrOversized, ErrMaxInitCodeSize, ErrEmptyAuthorizations,
	ErrSetCodeCreate, ErrTooManyAuthorizations, ErrMissingBlobHashes, ErrIntrinsicGas, ErrFloorDataGas,
	ErrTipAboveFeeCap, ErrNegativeValue, ErrFeeCapTooHigh, ErrTipTooHigh, ErrNonceMax,
}

// Spam reports whether an error of Add means that the transaction is invalid in
// itself, whatever the state of the chain. The host should then count a strike
// against the source that submitted it, for example with package ratelimit. It must
// not punish the sender named in the transaction, because a stranger can submit any
// transaction (invariant I8).
func Spam(err error) bool { return wrapsAny(err, spam) }

func wrapsAny(err error, all []error) bool {
	return slices.ContainsFunc(all, func(one error) bool { return errors.Is(err, one) })
}

// Underpriced reports whether an error of Add means that the transaction pays less
// than the floor, or that a replacement does not pay enough more. A client with an
// old fee estimate causes such an error now and then. If a source causes it
// repeatedly, the host should count strikes against the source, for example with
// package ratelimit. Underpriced returns false if the transaction was refused only
// because the pool is full.
func Underpriced(err error) bool {
	return (errors.Is(err, ErrUnderpriced) && !errors.Is(err, ErrPoolFull)) || errors.Is(err, ErrReplaceUnderpriced)
}

// labels maps errors to the names that Label returns. An error that wraps several of
// them gets the name of the first.
var labels = []labelled{
	{ErrAlreadyKnown, "known"}, {ErrPoolFull, "pool full"}, {ErrUnderpriced, "underpriced"}, {ErrNonceTooLow, "nonce too low"},
	{ErrNonceTooHigh, "nonce too high"}, {ErrInsufficientFunds, "funds"}, {ErrReplaceUnderpriced, "replacement underpriced"},
	{ErrReplaceOversized, "replacement oversized"}, {ErrReplaceTooOften, "replacement too often"}, {ErrReplaced, "replaced before"},
	{ErrQuarantined, "quarantined"}, {ErrInBundle, "in bundle"}, {ErrSenderLimit, "sender limit"}, {ErrDelegatedLimit, "delegated"}, {ErrDelegatedGap, "delegated gap"},
	{ErrAuthorityReserved, "authority"}, {ErrState, "state"}, {ErrExpired, "expired"}, {ErrRemoved, "removed"},
}

// labelled is an error with its short name.
type labelled struct {
	err   error
	label string
}

// labelOf returns the first element of labels whose error err wraps.
func labelOf(err error) labelled {
	for _, l := range labels {
		if errors.Is(err, l.err) {
			return l
		}
	}
	return labelled{}
}

// Label returns a short name for an error of Add or for Event.Reason, to be used as a label of a
// metric. There are about twenty names, such as "pool full". The name is "invalid" if the
// transaction is invalid in itself (see [Spam]), and "other" for an error of the host.
func Label(err error) string {
	name := labelOf(err).label
	if name != "" || !Spam(err) {
		return cmp.Or(name, "other")
	}
	return "invalid"
}
