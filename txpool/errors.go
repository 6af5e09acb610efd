package txpool

import "errors"

// The errors of the pool. Where geth has the same case, the text begins as geth's does, because wallets look for it.
// What is returned wraps one of these and says what was wrong and what would be right.
var (
	// ErrInvalidConfig is wrapped by every error of Config.Validate.
	ErrInvalidConfig = errors.New("txpool: invalid config")
	// ErrAlreadyKnown: the very transaction is in the pool.
	ErrAlreadyKnown = errors.New("already known")
	// ErrInvalidSender: the signature does not give a sender.
	ErrInvalidSender = errors.New("invalid sender")
	// ErrInvalidChainID: signed for another chain.
	ErrInvalidChainID = errors.New("invalid chain id for signer")
	// ErrUnprotected: a legacy transaction that any chain could replay (EIP-155).
	ErrUnprotected = errors.New("only replay-protected (EIP-155) transactions allowed over RPC")
	// ErrTypeNotSupported: a transaction type that the pool does not take.
	ErrTypeNotSupported = errors.New("transaction type not supported")
	// ErrOversized: the encoding is longer than Config.MaxTxSize.
	ErrOversized = errors.New("oversized data")
	// ErrMaxInitCodeSize: the code of a contract creation is too long (EIP-3860).
	ErrMaxInitCodeSize = errors.New("max initcode size exceeded")
	// ErrEmptyAuthorizations: a set-code transaction without authorizations (EIP-7702).
	ErrEmptyAuthorizations = errors.New("set code tx needs at least one authorization tuple")
	// ErrGasLimit: it asks for more gas than a block has.
	ErrGasLimit = errors.New("exceeds block gas limit")
	// ErrIntrinsicGas: it offers less gas than it costs before its first instruction.
	ErrIntrinsicGas = errors.New("intrinsic gas too low")
	// ErrFloorDataGas: it offers less gas than its data costs at least (EIP-7623).
	ErrFloorDataGas = errors.New("insufficient gas for floor data gas cost")
	// ErrTipAboveFeeCap: the tip cap is above the fee cap (EIP-1559).
	ErrTipAboveFeeCap = errors.New("max priority fee per gas higher than max fee per gas")
	// ErrFeeTooHigh: gas times fee cap plus value does not fit into 256 bits.
	ErrFeeTooHigh = errors.New("max fee per gas higher than 2^256-1")
	// ErrUnderpriced: it pays less than Config.MinGasPrice.
	ErrUnderpriced = errors.New("transaction underpriced")
	// ErrReplaceUnderpriced: it does not pay enough more than the transaction of the same nonce.
	ErrReplaceUnderpriced = errors.New("replacement transaction underpriced")
	// ErrReplaceOversized: it is much longer than the transaction that it would replace.
	ErrReplaceOversized = errors.New("replacement transaction oversized")
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
	// ErrPoolFull: the pool is full of transactions that are no worse.
	ErrPoolFull = errors.New("txpool is full")
	// ErrState: the host could not say what the account has.
	ErrState = errors.New("account state unavailable")
	// ErrExpired: it waited longer than Config.Lifetime.
	ErrExpired = errors.New("txpool: transaction expired")
	// ErrLeaseClosed: the lease was committed, released, or expired.
	ErrLeaseClosed = errors.New("txpool: lease is closed")
	// ErrNotLeased: the transaction is not in the lease.
	ErrNotLeased = errors.New("txpool: transaction is not in the lease")
)
