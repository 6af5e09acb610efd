package txpool

import (
	"math/big"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"
)

// countingSigner counts the recoveries of signatures.
type countingSigner struct {
	types.Signer
	recoveries *atomic.Int64
}

// Sender implements types.Signer.
func (s countingSigner) Sender(tx *types.Transaction) (common.Address, error) {
	s.recoveries.Add(1)
	return s.Signer.Sender(tx)
}

// Equal implements types.Signer.
func (s countingSigner) Equal(other types.Signer) bool {
	o, ok := other.(countingSigner)
	return ok && s.Signer.Equal(o.Signer)
}

// TestSendersAreRecoveredBeforeRestore: a pool that follows the log of another process knows the
// senders when the host calls Restore, which recovers none again.
func TestSendersAreRecoveredBeforeRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const transactions = 3*share + 1
		key, err := crypto.GenerateKey()
		require.NoError(t, err)
		open := func() *Pool {
			cfg := DefaultConfig(chainID)
			cfg.MaxPerSender = transactions
			p, err := New(cfg, StateFunc(func(common.Address) (Account, error) { return Account{Balance: veryRich}, nil }))
			require.NoError(t, err)
			return p
		}
		before := open()
		for nonce := range uint64(transactions) {
			require.NoError(t, before.Add(types.MustSignNewTx(key, before.signer, &types.DynamicFeeTx{
				ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(2 * gwei), GasFeeCap: big.NewInt(4 * gwei), Gas: 30_000, To: &common.Address{1},
			})))
		}
		after, recoveries := open(), new(atomic.Int64)
		after.signer = countingSigner{after.signer, recoveries}
		for _, record := range before.Records() {
			after.ReplayChange(record)
		}
		synctest.Wait()
		require.EqualValues(t, transactions, recoveries.Load())
		require.Equal(t, transactions, after.Restore().Transactions)
		require.EqualValues(t, transactions, recoveries.Load())
	})
}
