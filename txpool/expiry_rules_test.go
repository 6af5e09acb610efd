package txpool

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Expired transactions leave with the next Add, Build or Reset.
func TestExpiryInOtherCalls(t *testing.T) {
	for name, call := range map[string]func(*Pool){
		"Add":   func(p *Pool) { _ = p.Add(tx(0, 0, 1)) },
		"Build": func(p *Pool) { p.Build(context.Background(), Budget{}) },
		"Reset": func(p *Pool) { p.Reset(Head{}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			p := newPool(t, w, nil)
			add(t, p, tx(0, 0, 2))
			w.advance(time.Hour)
			call(p)
			require.Equal(t, StatusUnknown, p.Status(tx(0, 0, 2).Hash()))
			require.NoError(t, p.Check())
		})
	}
}

// A pool that the host does not call does nothing by itself, and calls none of the host's
// functions.
func TestNothingWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, newWorld(), func(c *Config) { c.Now = nil })
		add(t, p, tx(0, 0, 2))
		time.Sleep(2 * p.cfg.Lifetime)
		synctest.Wait()
		require.Equal(t, 1, p.Size())
		require.Equal(t, 1, p.CleanupExpired())
		require.Zero(t, p.Size())
	})
}

// An expired transaction stays while a later one in line stays. One behind a gap
// does not keep it.
func TestExpiryOfParents(t *testing.T) {
	w := newWorld()
	p := newPool(t, w, nil)
	add(t, p, tx(0, 0, 2), tx(1, 0, 2))
	w.advance(30 * time.Minute)
	add(t, p, tx(0, 1, 2), tx(1, 2, 2))
	w.advance(30 * time.Minute)
	p.CleanupExpired()
	require.Equal(t, "pp", statuses(p, 0, 2))
	require.Equal(t, "--q", statuses(p, 1, 3))
}
