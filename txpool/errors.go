package txpool

import (
	"errors"

	"github.com/ethereum/go-ethereum/core/types"
)

// The errors of the pool. Where geth has the same case the text is geth's, because wallets look for it.
// What is returned wraps one of these and says what was wrong and what would be right.
var (
	// ErrInvalidConfig is wrapped by every error of Config.Validate.
	ErrInvalidConfig = errors.New("txpool: invalid config")

	// ErrInvariant is wrapped by the errors of Pool.Check and Pool.CheckAll: the
	// pool is broken, by a mistake in it or in memory.
	ErrInvariant = errors.New("txpool: invariant violated")

	// Wrong in itself. See [Spam].

	// ErrMalformed: the bytes are not the binary encoding of a transaction (EIP-2718).
	ErrMalformed = errors.New("malformed transaction")
	// ErrInvalidSender: the signature does not give a sender.
	ErrInvalidSender = errors.New("invalid sender")
	// ErrInvalidChainID: signed for another chain. It is go-ethereum's.
	ErrInvalidChainID = types.ErrInvalidChainId
	// ErrUnprotected: a legacy transaction that any chain could replay (EIP-155).
	ErrUnprotected = errors.New("only replay-protected (EIP-155) transactions allowed over RPC")
	// ErrTypeNotSupported: a transaction type that the pool does not take. It is go-ethereum's.
	ErrTypeNotSupported = types.ErrTxTypeNotSupported
	// ErrOversized: the encoding is longer than Config.MaxTxSize.
	ErrOversized = errors.New("oversized data")
	// ErrMaxInitCodeSize: the code of a contract creation is too long (EIP-3860).
	ErrMaxInitCodeSize = errors.New("max initcode size exceeded")
	// ErrEmptyAuthorizations: a set-code transaction without authorizations (EIP-7702).
	ErrEmptyAuthorizations = errors.New("set code tx needs at least one authorization tuple")
	// ErrSetCodeCreate: a set-code transaction that creates a contract (EIP-7702).
	ErrSetCodeCreate = errors.New("set code tx cannot create a contract")
	// ErrTooManyAuthorizations: more than Config.MaxAuthorizations.
	ErrTooManyAuthorizations = errors.New("too many authorizations")
	// ErrAccessListTooLong: more addresses and keys than Config.MaxAccessList.
	ErrAccessListTooLong = errors.New("access list too long")
	// ErrMissingBlobHashes: a blob transaction without blobs (EIP-4844).
	ErrMissingBlobHashes = errors.New("blob transaction missing blob hashes")
	// ErrGasLimit: it asks for more gas than a block has.
	ErrGasLimit = errors.New("exceeds block gas limit")
	// ErrIntrinsicGas: it offers less gas than it costs before its first instruction.
	ErrIntrinsicGas = errors.New("intrinsic gas too low")
	// ErrFloorDataGas: it offers less gas than its data costs at least (EIP-7623).
	ErrFloorDataGas = errors.New("insufficient gas for floor data gas cost")
	// ErrTipAboveFeeCap: the tip cap is above the fee cap (EIP-1559).
	ErrTipAboveFeeCap = errors.New("max priority fee per gas higher than max fee per gas")
	// ErrNegativeValue: the value or a fee is below zero.
	ErrNegativeValue = errors.New("negative value")
	// ErrFeeCapTooHigh: the fee cap does not fit into 256 bits.
	ErrFeeCapTooHigh = errors.New("max fee per gas higher than 2^256-1")
	// ErrTipTooHigh: the tip cap does not fit into 256 bits.
	ErrTipTooHigh = errors.New("max priority fee per gas higher than 2^256-1")
	// ErrNonceMax: the nonce is 2^64-1, which no transaction may have (EIP-2681).
	ErrNonceMax = errors.New("nonce has max value")

	// Not now, or not for this sender.

	// ErrAlreadyKnown: the very transaction is in the pool, or the pool holds it
	// aside.
	ErrAlreadyKnown = errors.New("already known")
	// ErrUnderpriced: it pays less than the floor, or no more than the worst of a full pool.
	ErrUnderpriced = errors.New("transaction underpriced")
	// ErrReplaceUnderpriced: it does not pay enough more than the transaction of the same nonce.
	ErrReplaceUnderpriced = errors.New("replacement transaction underpriced")
	// ErrReplaceOversized: it is much longer than the transaction that it would replace.
	ErrReplaceOversized = errors.New("replacement transaction oversized")
	// ErrReplaceTooOften: the nonce was replaced Config.MaxReplacements times within Config.ReplacementWindow.
	ErrReplaceTooOften = errors.New("replacement transaction too soon")
	// ErrReplaced: the very transaction was replaced a short time ago, see Config.TombstoneTime.
	ErrReplaced = errors.New("transaction was replaced")
	// ErrQuarantined: the very transaction failed in building a short time ago, see Config.QuarantineTime.
	ErrQuarantined = errors.New("transaction failed in building")
	// ErrInBundle: the transaction of the same nonce is being put into a bundle.
	ErrInBundle = errors.New("transaction is in a bundle")
	// ErrNonceTooLow: the account is beyond that nonce.
	ErrNonceTooLow = errors.New("nonce too low")
	// ErrNonceTooHigh: the nonce is too far beyond the account's.
	ErrNonceTooHigh = errors.New("nonce too high")
	// ErrInsufficientFunds: the balance does not cover all of the sender's transactions.
	ErrInsufficientFunds = errors.New("insufficient funds for gas * price + value")
	// ErrSenderLimit: the sender has as many transactions as Config.MaxPerSender allows.
	ErrSenderLimit = errors.New("account limit exceeded")
	// ErrDelegatedLimit: the sender is, or is about to be, delegated and has Config.MaxDelegated transactions (EIP-7702).
	ErrDelegatedLimit = errors.New("in-flight transaction limit reached for delegated accounts")
	// ErrAuthorityReserved: it would delegate an account that has more than Config.MaxDelegated transactions here (EIP-7702).
	ErrAuthorityReserved = errors.New("authority already reserved")
	// ErrPoolFull: the pool is full of transactions that are no worse.
	ErrPoolFull = errors.New("txpool is full")
	// ErrState: the host could not say what the account has.
	ErrState = errors.New("account state unavailable")
	// ErrJournal: the transaction could not be written down, so it was not
	// stored. What it had displaced is in the pool again.
	ErrJournal = errors.New("txpool: journal failed")

	// Why a transaction left, and of leases.

	// ErrExpired: it waited longer than Config.Lifetime.
	ErrExpired = errors.New("txpool: transaction expired")
	// ErrRemoved: the host took it out.
	ErrRemoved = errors.New("txpool: transaction removed")
	// ErrNotFound: the transaction is not in the pool.
	ErrNotFound = errors.New("txpool: transaction not found")
	// ErrLeaseClosed: the lease was committed, released, or expired.
	ErrLeaseClosed = errors.New("txpool: lease is closed")
	// ErrNotLeased: the transaction is not in the lease.
	ErrNotLeased = errors.New("txpool: transaction is not in the lease")
)

// spam are the errors that an honest client has no reason to cause, however the chain moved meanwhile.
var spam = []error{
	ErrMalformed, ErrInvalidSender, ErrInvalidChainID, ErrTypeNotSupported, ErrOversized, ErrMaxInitCodeSize, ErrEmptyAuthorizations,
	ErrSetCodeCreate, ErrTooManyAuthorizations, ErrAccessListTooLong, ErrMissingBlobHashes, ErrIntrinsicGas, ErrFloorDataGas,
	ErrTipAboveFeeCap, ErrNegativeValue, ErrFeeCapTooHigh, ErrTipTooHigh, ErrNonceMax,
}

// Spam reports whether an error of Add means that the transaction is wrong in itself, so that whoever sent it deserves a strike
// of the [Limiter]. The sender that the transaction names deserves none: anybody can write anything (invariant I8).
func Spam(err error) bool {
	for _, s := range spam {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

// labels name errors in metrics, in the order in which they are looked for: an error that wraps two has the first's.
var labels = []struct {
	err   error
	label string
}{
	{ErrAlreadyKnown, "known"}, {ErrPoolFull, "pool full"}, {ErrUnderpriced, "underpriced"}, {ErrNonceTooLow, "nonce too low"},
	{ErrNonceTooHigh, "nonce too high"}, {ErrInsufficientFunds, "funds"}, {ErrReplaceUnderpriced, "replacement underpriced"},
	{ErrReplaceOversized, "replacement oversized"}, {ErrReplaceTooOften, "replacement too often"}, {ErrReplaced, "replaced before"},
	{ErrQuarantined, "quarantined"}, {ErrInBundle, "in bundle"}, {ErrSenderLimit, "sender limit"}, {ErrDelegatedLimit, "delegated"},
	{ErrAuthorityReserved, "authority"}, {ErrState, "state"}, {ErrJournal, "journal"}, {ErrExpired, "expired"}, {ErrRemoved, "removed"},
}

// label returns an error's name in metrics.
func label(err error) string {
	for _, l := range labels {
		if errors.Is(err, l.err) {
			return l.label
		}
	}
	if Spam(err) {
		return "invalid"
	}
	return "other"
}
