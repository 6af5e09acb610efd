package feed

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A contradiction is certain after more slots than allowed in which it was seen. Looks that are far
// apart show too little, however long it is between them, and a look without it begins again.
func TestContradiction(t *testing.T) {
	const slot, slots = 6 * time.Second, 16
	errLost, errSeen := errors.New("lost"), errors.New("seen")
	for name, x := range map[string]struct {
		between time.Duration
		looks   int // until the contradiction is certain
	}{
		"a look in each slot": {slot, slots + 2}, "many looks": {slot / 4, 4*slots + 2}, "looks that are far apart": {time.Hour, slots + 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c Contradiction
				for range 3 {
					for look := 1; look <= x.looks; look++ {
						err := c.Note(errLost, slots, slot, errSeen)
						require.ErrorIs(t, err, errSeen)
						require.Equal(t, look == x.looks, errors.Is(err, errLost), "look %d", look)
						time.Sleep(x.between)
					}
					c.End()
				}
			})
		})
	}
}
