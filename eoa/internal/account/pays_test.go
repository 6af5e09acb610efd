package account

import (
	"testing"

	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// A transaction behind the first one pays enough if a block can have it. A small
// change of the usual tip is no reason to raise all prices, and a large one is.
func TestPays(t *testing.T) {
	fees := func(limit, tip, blob uint64) Fees {
		return Fees{Cap: *uint256.NewInt(limit), Tip: *uint256.NewInt(tip), Blob: *uint256.NewInt(blob)}
	}
	for _, c := range []struct {
		fees      Fees
		base, tip uint64
		kind      Kind
		blobFee   uint64
		pays      bool
	}{
		{fees: fees(200, 2, 0), base: 100, tip: 2, pays: true},
		{fees: fees(200, 2, 0), base: 100, tip: 4, pays: true},
		{fees: fees(200, 2, 0), base: 100, tip: 6},
		{fees: fees(200, 2, 0), base: 199, tip: 2, pays: true},
		{fees: fees(200, 2, 0), base: 200, tip: 2},
		{fees: fees(200, 2, 0), base: 201, tip: 0},
		{fees: fees(200, 200, 0), base: 100, tip: 150, kind: Legacy, pays: true},
		{fees: fees(200, 2, 9), base: 100, tip: 2, kind: Blob, blobFee: 9, pays: true},
		{fees: fees(200, 2, 9), base: 100, tip: 2, kind: Blob, blobFee: 10},
	} {
		v := &View{LastLook: &Look{BaseFee: *uint256.NewInt(c.base), Tip: *uint256.NewInt(c.tip), BlobFee: *uint256.NewInt(c.blobFee)}}
		require.Equal(t, c.pays, v.pays(&Record{Request: Request{Kind: c.kind}, Attempts: []Attempt{{Fees: c.fees}}}), "%+v", c)
	}
}
