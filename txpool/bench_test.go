package txpool

import (
	"math/big"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// plains makes n transactions of different senders from the given one on, with a
// price in wei. Recovering signatures is not what is measured here.
func plains(n, from int, price func(i int) int64) []*types.Transaction {
	txs := make([]*types.Transaction, n)
	for i := range txs {
		to := common.BigToAddress(big.NewInt(int64(from+i) + 1))
		tip := price(i)
		txs[i] = types.NewTx(&types.DynamicFeeTx{ChainID: chainID, GasTipCap: big.NewInt(tip), GasFeeCap: big.NewInt(2 * tip), Gas: 30_000, To: &to, Value: big.NewInt(1)})
		txs[i].Hash()
		txs[i].Size()
	}
	return txs
}

func bigPool(b *testing.B, size int) *Pool {
	cfg := DefaultConfig(chainID)
	unsigned(&cfg)
	cfg.MaxPending, cfg.MaxQueued, cfg.MaxPerSender, cfg.MaxBytes = 2*size, 2*size, 128, 1<<40
	p, err := New(cfg, StateFunc(func(common.Address) (Account, error) { return Account{Balance: veryRich}, nil }))
	require.NoError(b, err)
	return p
}

var veryRich = *new(uint256.Int).Lsh(uint256.NewInt(1), 100)

func randomTip(r *rand.Rand) func(int) int64 {
	return func(int) int64 { return 2*gwei + r.Int64N(100*gwei) }
}

func fill(b testing.TB, p *Pool, txs []*types.Transaction) {
	for i, err := range p.AddAll(txs) {
		if err != nil {
			b.Fatalf("transaction %d: %v", i, err)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	for _, n := range []int{5_000, 100_000, 1_000_000} {
		b.Run(big.NewInt(int64(n)).String(), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			p := bigPool(b, 2*n)
			fill(b, p, plains(n, 0, randomTip(r)))
			runtime.GC()
			b.ReportAllocs()
			b.ResetTimer()
			const round = 1000 // transactions arrive, and are added: they are warm
			var fresh []*types.Transaction
			for i := range b.N {
				if i%round == 0 {
					b.StopTimer()
					for _, tx := range fresh {
						p.Remove(tx.Hash())
					}
					fresh = plains(round, n+i, randomTip(r))
					b.StartTimer()
				}
				if err := p.Add(fresh[i%round]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Batches of transactions of 20,000 senders, whose signatures are known.
func BenchmarkAddAll(b *testing.B) {
	const n, batch = 20_000, 1000
	txs := plains(n, 0, randomTip(rand.New(rand.NewPCG(1, 2))))
	b.ReportAllocs()
	for i := 0; i < b.N; {
		b.StopTimer()
		p := bigPool(b, n)
		runtime.GC()
		b.StartTimer()
		for at := 0; at < n && i < b.N; at, i = at+batch, i+batch {
			fill(b, p, txs[at:at+batch])
		}
	}
}

func BenchmarkEvict(b *testing.B) {
	const n = 10_000
	r := rand.New(rand.NewPCG(1, 2))
	p := bigPool(b, 2*n)
	fill(b, p, plains(n, 0, randomTip(r)))
	p.cfg.MaxPending = n
	b.ReportAllocs()
	b.ResetTimer()
	tip := int64(200 * gwei)
	var fresh []*types.Transaction
	for i := range b.N {
		if i%1000 == 0 {
			b.StopTimer()
			fresh = plains(1000, n+i, func(int) int64 { tip++; return tip })
			b.StartTimer()
		}
		if err := p.Add(fresh[i%1000]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReplace(b *testing.B) {
	const n = 10_000
	r := rand.New(rand.NewPCG(1, 2))
	p := bigPool(b, 2*n)
	first := plains(n, 0, randomTip(r))
	for range b.N {
		b.StopTimer()
		for _, tx := range offered(p) {
			_ = p.Remove(tx.Hash())
		}
		p.core.replaced = newRecent[struct{}](0, 0)
		fill(b, p, first)
		dearer := plains(n, 0, func(i int) int64 { return first[i].GasTipCap().Int64() * 2 })
		b.StartTimer()
		fill(b, p, dearer)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/tx")
}

func BenchmarkCommit(b *testing.B) {
	const n, block = 100_000, 10_000
	r := rand.New(rand.NewPCG(1, 2))
	txs := plains(n, 0, randomTip(r))
	p := bigPool(b, 2*n)
	nonces := make(map[common.Address]uint64)
	p.state = StateFunc(func(a common.Address) (Account, error) { return Account{Nonce: nonces[a], Balance: veryRich}, nil })
	for range b.N {
		b.StopTimer()
		nonces = make(map[common.Address]uint64)
		p.Reset(Head{})
		p.core.cache.Purge()
		p.AddAll(txs)
		s := drain(p, Budget{Count: block})
		done := s.Transactions()
		touched := make([]common.Address, len(done))
		for i, tx := range done {
			touched[i], _ = p.cfg.Sender(tx)
		}
		runtime.GC()
		b.StartTimer()
		for _, a := range touched {
			nonces[a] = 1
		}
		p.Reset(Head{Included: []Block{{Transactions: done}}, Touched: touched})
	}
}
