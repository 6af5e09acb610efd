package txpool

import (
	"bytes"

	"github.com/ethereum/go-ethereum/core/types"
)

// Gas costs of a transaction before its first instruction.
const (
	txGas            = 21_000 // EIP-2
	createGas        = 32_000 // EIP-2
	zeroByteGas      = 4      // EIP-2028
	otherByteGas     = 16     // EIP-2028
	initCodeWordGas  = 2      // EIP-3860
	maxInitCodeSize  = 49_152 // EIP-3860
	accessAddressGas = 2_400  // EIP-2930
	accessKeyGas     = 1_900  // EIP-2930
	authorizationGas = 25_000 // EIP-7702
	tokensPerByte    = 4      // EIP-7623, per nonzero byte
	floorGasPerToken = 10     // EIP-7623
	wordSize         = 32
)

// intrinsicGas returns the gas cost of a transaction before its first
// instruction, and the minimum cost of its data. Config.MaxTxSize bounds sizes,
// so nothing overflows.
func intrinsicGas(tx *types.Transaction) (intrinsic, floor uint64) {
	data := tx.Data()
	zeros := uint64(bytes.Count(data, []byte{0}))
	others := uint64(len(data)) - zeros
	intrinsic = txGas + zeros*zeroByteGas + others*otherByteGas
	if tx.To() == nil {
		intrinsic += createGas + (uint64(len(data))+wordSize-1)/wordSize*initCodeWordGas
	}
	list := tx.AccessList()
	intrinsic += uint64(len(list))*accessAddressGas + uint64(list.StorageKeys())*accessKeyGas
	intrinsic += uint64(len(tx.SetCodeAuthorizations())) * authorizationGas
	return intrinsic, txGas + (zeros+others*tokensPerByte)*floorGasPerToken
}
