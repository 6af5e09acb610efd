package txpool

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// journalFunc makes a function a Journal.
type journalFunc func(records ...[]byte) error

func (f journalFunc) Append(records ...[]byte) error { return f(records...) }

// The new journal refuses a change that another goroutine makes after the last
// transactions were copied. Rotate fails, and the old journal gets all later
// records.
func TestRotateRefusesChange(t *testing.T) {
	var old [][]byte
	w := newWorld()
	p := newPool(t, w, func(c *Config) {
		c.Journal = journalFunc(func(records ...[]byte) error {
			old = append(old, records...)
			return nil
		})
	})
	add(t, p, tx(0, 0, 5))
	full := errors.New("no space")
	calls, refusing := 0, false
	var next journalFunc = func(...[]byte) error {
		if refusing {
			return full
		}
		if calls++; calls == 3 { // general records, senders, transactions
			// Another goroutine writes before the leases are copied. It would
			// hold the lock that the caller of this function holds.
			refusing = true
			require.NoError(t, p.out.append(p.out.journal, nil))
			refusing = false
		}
		return nil
	}
	require.ErrorIs(t, p.Rotate(next), full)
	before := len(old)
	add(t, p, tx(1, 0, 5))
	require.Len(t, old, before+1, "the old journal has the transaction that was acknowledged")
}
