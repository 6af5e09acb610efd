package txpool

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// unsigned are transactions whose sender stands in the data: recovering signatures is not what is
// measured here.
func unsigned(n int, sender func(i int) uint64, nonce func(i int) uint64, tip func(i int) int64) []*types.Transaction {
	txs := make([]*types.Transaction, n)
	for i := range txs {
		price := tip(i)
		data := binary.BigEndian.AppendUint64(nil, sender(i))
		txs[i] = types.NewTx(&types.DynamicFeeTx{ChainID: chainID, Nonce: nonce(i), GasTipCap: big.NewInt(price), GasFeeCap: big.NewInt(price * 2), Gas: 30_000, To: &common.Address{1}, Value: big.NewInt(1), Data: data})
		txs[i].Hash()
		txs[i].Size()
	}
	return txs
}

func bigPool(b testing.TB, size int) *Pool {
	cfg := DefaultConfig(chainID)
	cfg.MaxPending, cfg.MaxQueued, cfg.MaxPerSender = 2*size, 2*size, 128
	cfg.MaxBytes = 1 << 40
	cfg.Sender = func(tx *types.Transaction) (common.Address, error) {
		var a common.Address
		copy(a[:], tx.Data())
		return a, nil
	}
	rich := Account{Balance: *new(uint256.Int).Lsh(uint256.NewInt(1), 100)}
	p, err := New(cfg, StateFunc(func(common.Address) (Account, error) { return rich, nil }))
	if err != nil {
		b.Fatal(err)
	}
	return p
}

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
			fill(b, p, unsigned(n, func(i int) uint64 { return uint64(i) }, func(int) uint64 { return 0 }, randomTip(r)))
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
					fresh = unsigned(round, func(j int) uint64 { return uint64(n + i + j) }, func(int) uint64 { return 0 }, randomTip(r))
					b.StartTimer()
				}
				if err := p.Add(fresh[i%round]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func zero(int) uint64 { return 0 }

func BenchmarkEvict(b *testing.B) {
	const n = 10_000
	r := rand.New(rand.NewPCG(1, 2))
	p := bigPool(b, 2*n)
	fill(b, p, unsigned(n, func(i int) uint64 { return uint64(i) }, zero, randomTip(r)))
	p.cfg.MaxPending = n
	b.ReportAllocs()
	b.ResetTimer()
	tip := int64(200 * gwei)
	var fresh []*types.Transaction
	for i := range b.N {
		if i%1000 == 0 {
			b.StopTimer()
			fresh = unsigned(1000, func(j int) uint64 { return uint64(n + i + j) }, zero, func(int) int64 { tip++; return tip })
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
	first := unsigned(n, func(i int) uint64 { return uint64(i) }, zero, randomTip(r))
	for range b.N {
		b.StopTimer()
		for _, tx := range p.Candidates() {
			_ = p.Remove(tx.Hash())
		}
		p.core.replaced = newRecent[struct{}](0, 0)
		fill(b, p, first)
		dearer := unsigned(n, func(i int) uint64 { return uint64(i) }, zero, func(i int) int64 { return first[i].GasTipCap().Int64() * 2 })
		b.StartTimer()
		fill(b, p, dearer)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/tx")
}

func BenchmarkCommit(b *testing.B) {
	const n, block = 100_000, 10_000
	r := rand.New(rand.NewPCG(1, 2))
	txs := unsigned(n, func(i int) uint64 { return uint64(i) }, zero, randomTip(r))
	p := bigPool(b, 2*n)
	nonces := make(map[common.Address]uint64)
	rich := *new(uint256.Int).Lsh(uint256.NewInt(1), 100)
	p.state = StateFunc(func(a common.Address) (Account, error) { return Account{Nonce: nonces[a], Balance: rich}, nil })
	for range b.N {
		b.StopTimer()
		nonces = make(map[common.Address]uint64)
		p.Reset(Head{})
		p.core.cache.Purge()
		p.AddAll(txs)
		l := p.Drain(Budget{Count: block})
		done := l.Transactions()
		touched := make([]common.Address, len(done))
		for i, tx := range done {
			touched[i], _ = p.cfg.Sender(tx)
		}
		runtime.GC()
		b.StartTimer()
		if err := l.Commit(); err != nil {
			b.Fatal(err)
		}
		for _, a := range touched {
			nonces[a] = 1
		}
		p.Reset(Head{Included: []Block{{Transactions: done}}, Touched: touched})
	}
}
