package txpool

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Check finds each kind of damage to one of 600 transactions.
func TestCheckFindsDamage(t *testing.T) {
	const senders, each = 60, 10
	for name, damage := range map[string]func(c *core, a *account){
		"rank":     func(_ *core, a *account) { a.txs[0].rank++ },
		"place":    func(_ *core, a *account) { a.txs[3].lead.seq++ },
		"status":   func(_ *core, a *account) { a.txs[3].status = parked },
		"index":    func(c *core, a *account) { c.ready.Delete(a.txs[2].ranked(a.txs[2].lead)) },
		"hash":     func(c *core, a *account) { delete(c.all, a.txs[1].hash()) },
		"balance":  func(_ *core, a *account) { a.Balance.Clear() },
		"line":     func(_ *core, a *account) { a.line-- },
		"total":    func(c *core, _ *account) { c.uses[ready].count++ },
		"locked":   func(c *core, _ *account) { c.uses[building].count-- },
		"sender":   func(c *core, a *account) { delete(c.accounts, a.address) },
		"gapped":   func(_ *core, a *account) { a.gapped++ },
		"cost":     func(_ *core, a *account) { a.cost.AddUint64(&a.cost, 1) },
		"lent":     func(_ *core, a *account) { a.ahead++ },
		"slot":     func(_ *core, a *account) { a.slot++ },
		"reversed": func(_ *core, a *account) { a.txs[4], a.txs[5] = a.txs[5], a.txs[4] },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for i := range senders {
				for n := range uint64(each) {
					require.NoError(t, w.Add(tx(i, n, 2)))
				}
			}
			w.check()
			damage(w.core, w.core.accounts[addr(40)])
			require.ErrorIs(t, w.Check(), ErrInvariant)
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	w := newWorld(b, func(c *Config) { c.MaxPending, c.MaxPerSender = 20_000, 400 })
	for i := range 64 {
		for n := range uint64(312) {
			require.NoError(b, w.Add(tx(i, n, 2)))
		}
	}
	for b.Loop() {
		if err := w.Check(); err != nil {
			b.Fatal(err)
		}
	}
}
