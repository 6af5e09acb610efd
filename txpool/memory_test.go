package txpool

import (
	"math/big"
	"runtime"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// The memory that the pool counts is within a quarter of that of the heap, for
// transactions of all types and shapes (I15).
func TestMemory(t *testing.T) {
	const n, perSender = 1500, 4
	price := gweis(2)
	small := uint256.MustFromBig(price)
	for name, shape := range map[string]func(nonce uint64) types.TxData{
		"legacy": func(nonce uint64) types.TxData {
			return &types.LegacyTx{Nonce: nonce, GasPrice: price, Gas: txGas, To: there}
		},
		"transfer": func(nonce uint64) types.TxData {
			return &types.DynamicFeeTx{ChainID: chainID, Nonce: nonce, GasTipCap: price, GasFeeCap: price, Gas: txGas, To: there, Value: big.NewInt(1e9)}
		},
		"data": func(nonce uint64) types.TxData {
			return &types.DynamicFeeTx{ChainID: chainID, Nonce: nonce, GasTipCap: price, GasFeeCap: price, Gas: 200_000, To: there, Data: make([]byte, 5000)}
		},
		"addresses": func(nonce uint64) types.TxData {
			return &types.AccessListTx{ChainID: chainID, Nonce: nonce, GasPrice: price, Gas: 2_000_000, To: there, AccessList: make(types.AccessList, 100)}
		},
		"keys": func(nonce uint64) types.TxData {
			list := types.AccessList{{StorageKeys: make([]common.Hash, 3)}, {StorageKeys: make([]common.Hash, 70)}}
			return &types.AccessListTx{ChainID: chainID, Nonce: nonce, GasPrice: price, Gas: 2_000_000, To: there, AccessList: list}
		},
		"authorizations": func(nonce uint64) types.TxData {
			auths := []types.SetCodeAuthorization{delegate(1, 1<<40), delegate(2, 1<<40), delegate(3, 1<<40)}
			return &types.SetCodeTx{ChainID: uint256.MustFromBig(chainID), Nonce: nonce, GasTipCap: small, GasFeeCap: small, Gas: 200_000, AuthList: auths}
		},
		"blobs": func(nonce uint64) types.TxData {
			return &types.BlobTx{
				ChainID: uint256.MustFromBig(chainID), Nonce: nonce, GasTipCap: small, GasFeeCap: small, Gas: txGas,
				BlobFeeCap: uint256.NewInt(1), BlobHashes: make([]common.Hash, 6),
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			raws := make([][]byte, n)
			for i := range raws {
				var err error
				raws[i], err = sign(1+i/perSender, shape(uint64(i%perSender))).MarshalBinary()
				require.NoError(t, err)
			}
			before := heapInUse()
			w := newWorld(t, forgetful, func(c *Config) {
				c.MaxPending, c.MaxBytes, c.MaxDelegated, c.AcceptBlobs = n, 1<<40, perSender, true
			})
			_, errs := w.AddAllRaw(raws)
			for _, err := range errs {
				require.NoError(t, err)
			}
			have, want := float64(w.Stats().PendingBytes)/n, float64(heapInUse()-before)/n
			require.InEpsilon(t, want, have, 0.25, "counted %.0f bytes for each, the heap has %.0f", have, want)
			runtime.KeepAlive(raws)
			runtime.KeepAlive(w)
		})
	}
}

// heapInUse returns the bytes of all objects that are reachable.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
