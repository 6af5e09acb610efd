package txpool

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"
)

// BenchmarkRestore fills a pool with the records of 100,000 transactions whose senders are known,
// as a host does that has followed another process.
func BenchmarkRestore(b *testing.B) {
	const n = 100_000
	for _, senders := range []int{10, 2000} {
		b.Run(fmt.Sprint(senders, " senders"), func(b *testing.B) {
			signer := types.LatestSignerForChainID(chainID)
			var records [][]byte
			{
				p := newSigned(b, n)
				for s := range senders {
					key, err := crypto.GenerateKey()
					require.NoError(b, err)
					var txs []*types.Transaction
					for i := range n / senders {
						txs = append(txs, types.MustSignNewTx(key, signer, &types.DynamicFeeTx{
							ChainID: chainID, Nonce: uint64(1 + i), GasTipCap: big.NewInt(2 * gwei), GasFeeCap: big.NewInt(4 * gwei), Gas: 30_000, To: &common.Address{1}, Value: big.NewInt(int64(s)),
						}))
					}
					fill(b, p, txs)
				}
				records = p.Records()
			}
			for b.Loop() {
				b.StopTimer()
				p := newSigned(b, n)
				for _, record := range records {
					p.ReplayChange(record)
				}
				for _, o := range p.replayed.added {
					_, _ = types.Sender(p.signer, o.tx)
				}
				b.StartTimer()
				require.Equal(b, n, p.Restore().Transactions)
			}
		})
	}
}

func newSigned(b *testing.B, n int) *Pool {
	cfg := DefaultConfig(chainID)
	cfg.MaxPending, cfg.MaxQueued, cfg.MaxPerSender, cfg.MaxBytes = 2*n, 2*n, n, 1<<40
	p, err := New(cfg, StateFunc(func(common.Address) (Account, error) { return Account{Balance: veryRich}, nil }))
	require.NoError(b, err)
	return p
}
