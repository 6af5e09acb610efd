package evmrollup

import (
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/jamq/jamq/txpool"
)

// Limits are the limits that a transaction must meet. jam_getLimits returns them to
// clients. If a transaction exceeds a limit, the error of SendTransaction names the
// limit and its value.
type Limits struct {
	// TxGas is the greatest gas limit of a transaction (EIP-7825). BlockGas is the gas limit of a
	// block.
	TxGas    hexutil.Uint64 `json:"txGas"`
	BlockGas hexutil.Uint64 `json:"blockGas"`
	// TxBytes is the maximum size of a transaction's binary encoding. InitCodeBytes is the maximum
	// size of the init code of a transaction that creates a contract (EIP-3860).
	TxBytes       hexutil.Uint64 `json:"txBytes"`
	InitCodeBytes hexutil.Uint64 `json:"initCodeBytes"`
	// Authorizations is the maximum number of authorizations in a transaction
	// (EIP-7702).
	Authorizations hexutil.Uint64 `json:"authorizations"`
	// NonceDistance is the greatest allowed difference between a transaction's nonce and
	// the nonce of the sender's account.
	NonceDistance hexutil.Uint64 `json:"nonceDistance"`
	// PerSender is the maximum number of transactions that one sender may have in the pool.
	// PerDelegated is the maximum for a sender whose account is delegated (EIP-7702).
	PerSender    hexutil.Uint64 `json:"perSender"`
	PerDelegated hexutil.Uint64 `json:"perDelegated"`
	// Pending is the maximum number of executable transactions in the pool. Queued is the
	// maximum number of transactions that wait behind a nonce gap.
	Pending hexutil.Uint64 `json:"pending"`
	Queued  hexutil.Uint64 `json:"queued"`
}

func limitsOf(pool *txpool.Config) Limits {
	return Limits{
		TxGas: hexutil.Uint64(pool.GreatestGas()), BlockGas: hexutil.Uint64(pool.BlockGasLimit),
		TxBytes: hexutil.Uint64(pool.MaxTxSize), InitCodeBytes: txpool.MaxInitCodeSize,
		Authorizations: txpool.MaxAuthorizations,
		NonceDistance:  hexutil.Uint64(pool.MaxNonceDistance()),
		PerSender:      hexutil.Uint64(pool.MaxPerSender), PerDelegated: hexutil.Uint64(pool.MaxDelegated),
		Pending: hexutil.Uint64(pool.MaxPending), Queued: hexutil.Uint64(pool.MaxQueued),
	}
}

// Limits returns the limits for transactions.
func (c *Chain) Limits() Limits { return c.limits }
