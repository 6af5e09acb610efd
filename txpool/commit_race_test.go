package txpool

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A transaction that another goroutine returns or rejects while the journal
// writes the commit of its lease is in the same place after a restart.
func TestReturnDuringCommit(t *testing.T) {
	first := tx(0, 0, 5)
	for name, change := range map[string]func(*Pool, *Lease) error{
		"return": func(_ *Pool, l *Lease) error { return l.Return(first.Hash()) },
		"reject": func(_ *Pool, l *Lease) error { return l.Reject(first.Hash(), errPanic) },
		"pool":   func(p *Pool, _ *Lease) error { return p.Reject(first.Hash(), errPanic) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			var records [][]byte
			during := func() {}
			done := make(chan error, 1)
			cfg := func(c *Config) {
				c.Journal = journalFunc(func(more ...[]byte) error {
					for _, r := range more {
						records = append(records, bytes.Clone(r))
					}
					during()
					return nil
				})
			}
			p := newPool(t, w, cfg)
			add(t, p, first)
			l := p.Drain(Budget{})
			during = func() {
				during = func() {}
				go func() { done <- change(p, l) }()
				for range 10_000 {
					runtime.Gosched() // it changes the pool, unless it waits
				}
			}
			require.NoError(t, l.Commit())
			<-done // an error, or nil
			restored := newPool(t, w, nil)
			_, err := restored.Restore(func(f func([]byte) error) error {
				for _, r := range records {
					_ = f(r)
				}
				return nil
			})
			require.NoError(t, err)
			require.NoError(t, sameContent(p, restored))
		})
	}
}
