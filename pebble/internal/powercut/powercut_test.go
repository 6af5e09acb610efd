package powercut

import (
	"testing"

	"github.com/cockroachdb/pebble"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/pebble/pebbledb"
)

// writes is more than Pebble takes without a compaction.
const writes = 16

// write makes durable writes on a disk, with a flush after each.
func write(t *testing.T, d *Disk) {
	db, err := pebbledb.Open("db", d.Options())
	require.NoError(t, err)
	for i := range writes {
		require.NoError(t, db.Pebble().Set([]byte{byte(i)}, []byte("value"), pebble.Sync))
		d.Acknowledge()
		require.NoError(t, db.Pebble().Flush())
	}
	require.NoError(t, db.Close())
}

// read returns how many writes are on a disk.
func read(t *testing.T, d *Disk) (n int) {
	db, err := pebbledb.Open("db", d.Options())
	require.NoError(t, err)
	it, err := db.Pebble().NewIter(nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	require.NoError(t, it.Close())
	require.NoError(t, db.Close())
	return n
}

// Each write is lost at some syncs and survives at others, and the number of
// syncs is the same in each run.
func TestPowerFailsAtASync(t *testing.T) {
	var last int
	for range 2 {
		survived := map[int]bool{}
		at := 1
		for failed := true; failed; at++ {
			d := New(at)
			write(t, d)
			cut := d.Failed()
			var safe int
			safe, failed = d.Restart()
			require.Equal(t, cut, failed)
			n := read(t, d)
			require.Equal(t, safe, n, "the power fails before the sync that would save another one")
			survived[n] = true
		}
		require.Len(t, survived, writes+1)
		require.True(t, last == 0 || last == at, "%d syncs, and %d before", at, last)
		last = at
	}
}

// After Restart the power stays.
func TestPowerStays(t *testing.T) {
	d := New(1)
	write(t, d)
	require.True(t, d.Failed())
	d.Restart()
	require.False(t, d.Failed())
	write(t, d)
	require.Equal(t, writes, read(t, d))
}
