package account

// meaning maps a reason to the texts that nodes use for it. Each text is the
// beginning of an answer, in lower case, and a star in it stands for any text.
type meaning struct {
	reason Reason
	texts  []string
}

// meanings lists the known texts by node, with the source files of the node that
// contain them. Forks answer like the node they come from.
var meanings = []meaning{
	// geth, and its forks op-geth, bor, coreth and nitro: core/txpool/errors.go,
	// core/txpool/validation.go, core/error.go, internal/ethapi/api.go
	{ReasonKnown, []string{"already known", "known transaction"}},
	{ReasonNonceTooLow, []string{"nonce too low"}},
	{ReasonNonceGap, []string{"nonce too high", "gapped-nonce"}},
	{ReasonReplacement, []string{"replacement transaction underpriced", "future transaction tries to replace pending"}},
	{ReasonFunds, []string{"insufficient funds"}},
	{ReasonUnderpriced, []string{
		"transaction underpriced", "transaction gas price below minimum", "max fee per gas less than block base fee",
		"max fee per blob gas less than block blob gas fee",
	}},
	{ReasonFull, []string{
		"txpool is full", "out of capacity", "account limit exceeded", "address already reserved", "authority already reserved",
		"in-flight transaction limit reached",
	}},
	{ReasonGasLimit, []string{"exceeds block gas limit", "transaction gas limit too high"}},
	{ReasonFeeCap, []string{"tx fee * exceeds the configured cap"}},
	{ReasonInvalid, []string{
		"intrinsic gas too low", "insufficient gas for floor data gas cost", "oversized data", "negative value", "max initcode size exceeded",
		"max priority fee per gas higher than max fee per gas", "transaction type not supported", "invalid sender", "invalid chain id",
		"sender not an eoa", "only replay-protected", "too many blobs in transaction", "blob transaction has too many blobs",
		"transaction blob limit exceeded", "missing sidecar in blob transaction", "wrong sidecar format", "unexpected sidecar version",
		"legacy blob sidecar unsupported post-osaka", "kzg verification error",
	}},

	// reth: crates/transaction-pool/src/error.rs, crates/rpc/rpc-eth-types/src/error
	{ReasonKnown, []string{"already imported"}},
	{ReasonReplacement, []string{"insufficient gas price to replace existing transaction"}},
	{ReasonFunds, []string{"transaction overdraws from account"}},
	{ReasonUnderpriced, []string{"transaction feecap * below chain minimum"}},
	{ReasonFull, []string{
		"rejected due to * being identified as a spammer", "transaction discarded outright due to pool size constraints",
		"transaction type * conflicts with existing transaction",
	}},
	{ReasonGasLimit, []string{"transaction's gas limit * exceeds block's gas limit"}},
	{ReasonInvalid, []string{
		"input data too large", "unexpected eip-4844 sidecar after osaka", "unexpected eip-7594 sidecar before osaka",
		"blobless blob transaction",
	}},

	// nethermind: Nethermind.TxPool/AcceptTxResult.cs, Nethermind.Core/Messages
	{ReasonKnown, []string{"alreadyknown"}},
	{ReasonNonceTooLow, []string{"oldnonce"}},
	{ReasonNonceGap, []string{"noncegap", "noncetoofarinfuture", "nonce too far in future", "delegation nonce gap"}},
	{ReasonReplacement, []string{"replacementnotallowed"}},
	{ReasonFunds, []string{"insufficientfunds"}},
	{ReasonUnderpriced, []string{"feetoolow", "feetoolowtocompete"}},
	{ReasonFull, []string{"pending transaction type conflict", "pendingtxsofconflictingtype", "delegation authority has pending transaction"}},
	{ReasonGasLimit, []string{"gaslimitexceeded", "gas limit reached"}},
	{ReasonInvalid, []string{
		"unsupported transaction type", "transaction too large", "transaction cost overflow", "failed to recover sender", "transaction invalid",
	}},

	// erigon: txnprovider/txpool/txpoolcfg/txpoolcfg.go
	{ReasonKnown, []string{"existing txn with same hash"}},
	{ReasonReplacement, []string{"could not replace existing tx", "can't replace blob-txn with a non-blob-txn"}},
	{ReasonUnderpriced, []string{"fee too low", "underpriced"}},
	{ReasonFull, []string{
		"pending sub-pool is full", "basefee sub-pool is full", "queued sub-pool is full", "blobs limit in txpool is full", "spammer",
	}},
	{ReasonGasLimit, []string{"gas limit is too high"}},
	{ReasonInvalid, []string{
		"intrinsicgas", "gasuintoverflow", "rlptoolong", "initcode too large", "fork supporting this transaction type is not activated yet",
		"max number of blobs exceeded", "blob transactions must have at least one blob", "kzgcommitment's versioned hash has to be equal",
		"kzgcommitments must match the corresponding blobs", "blob_versioned_hashes, blobs, commitments and proofs must",
	}},

	// besu: ethereum/api, RpcErrorType.java; ethereum/core, TransactionInvalidReason.java
	{ReasonKnown, []string{"transaction_already_known"}},
	{ReasonNonceTooLow, []string{"nonce_too_low"}},
	{ReasonNonceGap, []string{"nonce_too_far_in_future", "transaction nonce is too distant from current sender nonce"}},
	{ReasonReplacement, []string{"transaction_replacement_underpriced"}},
	{ReasonFunds, []string{"upfront cost exceeds account balance", "upfront_cost_exceeds_balance"}},
	{ReasonUnderpriced, []string{
		"gas price below configured minimum gas price", "gas price below current base fee", "blob gas price below current blob base fee",
		"gas_price_too_low",
	}},
	{ReasonGasLimit, []string{"transaction gas limit exceeds block gas limit", "exceeds_block_gas_limit", "exceeds_per_transaction_gas_limit"}},
	{ReasonInvalid, []string{
		"intrinsic gas exceeds gas limit", "intrinsic_gas_exceeds_gas_limit", "max priority fee per gas exceeds max fee per gas",
	}},

	// openethereum, and anvil: rpc/src/v1/helpers/errors.rs; crates/anvil/src/eth/error.rs
	{ReasonKnown, []string{"transaction with the same hash was already imported", "transaction already imported"}},
	{ReasonNonceTooLow, []string{"transaction nonce is too low"}},

	// gateways that limit rates: answers of public gateways
	{ReasonBusy, []string{
		"too many requests", "* rate limit", "rate limit", "* request limit", "* request rate limited", "* compute units per second",
	}},
}
